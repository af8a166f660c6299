/* What the packet program and its loader share: the settings, the counts, and the arithmetic of chance.
 *
 * Plain C, because it is compiled for BPF and into the host's code. Chance is a function of the seed, the number of the
 * packet and the number of the question: no generator has to be kept, and the outcome for a packet does not depend on
 * the CPU that handles it. The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
 */
#ifndef RAILBREAK_INJECTORS_PROGRAMS_PACKET_PROGRAM_H
#define RAILBREAK_INJECTORS_PROGRAMS_PACKET_PROGRAM_H

#include <linux/types.h>

/* Probabilities are whole millionths. */
struct packet_settings {
    __u64 deadline_ns; /* on CLOCK_BOOTTIME; past it everything passes */
    __u64 seed;
    __u32 loss;
    __u32 bursts; /* 1: the four below count, and `loss` does not */
    __u32 good_to_bad;
    __u32 bad_to_good;
    __u32 loss_in_bad;
    __u32 loss_in_good;
    __u32 corrupt;
    __u32 duplicate;
    __u32 ifindex; /* of the device the program hangs on: where a duplicate goes */
    __u32 arrives; /* 1: the program sees what arrives, 0: what leaves */
    __u32 ends_redirect; /* 1: past the deadline packets skip the filters behind the program */
    __u32 unused;
};

/* One per CPU; the sum counts. */
struct packet_counts {
    __u64 seen;
    __u64 lost;
    __u64 corrupted;
    __u64 duplicated;
};

/* Questions that chance answers for each packet. */
enum packet_question {
    PACKET_IS_LOST = 0,
    PACKET_CHANGES_STATE = 1, /* of the chain of bursts */
    PACKET_IS_DUPLICATED = 2,
    PACKET_IS_CORRUPTED = 3,
    PACKET_BIT = 4, /* which bit is turned over */
    PACKET_QUESTIONS = 8
};

static inline __u64 packet_random(__u64 seed, __u64 packet, __u64 question) {
    __u64 x = seed + (packet * PACKET_QUESTIONS + question + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* A number below `end`, from the upper half of the random bits. */
static inline __u32 packet_random_below(__u64 seed, __u64 packet, __u64 question, __u32 end) {
    return (__u32)(((packet_random(seed, packet, question) >> 32) * end) >> 32);
}

static inline int packet_happens(const struct packet_settings *settings, __u64 packet, __u64 question,
                                 __u32 millionths) {
    return packet_random_below(settings->seed, packet, question, 1000000) < millionths;
}

/* Loss of the packet of that number. `bad` is the state of the chain of bursts: the packet meets the state that the one
 * before left, and then the chain makes its step. */
static inline int packet_is_lost(const struct packet_settings *settings, __u64 packet, __u32 *bad) {
    __u32 loss = settings->loss;
    if (settings->bursts) {
        const __u32 change = *bad ? settings->bad_to_good : settings->good_to_bad;
        loss = *bad ? settings->loss_in_bad : settings->loss_in_good;
        if (packet_happens(settings, packet, PACKET_CHANGES_STATE, change)) {
            *bad = !*bad;
        }
    }
    return packet_happens(settings, packet, PACKET_IS_LOST, loss);
}

#endif
