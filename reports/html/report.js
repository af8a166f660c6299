// Makes a report's page move: see below. Without it the page is complete.
(function () {
  "use strict";
  document.documentElement.classList.add("js");
})();
