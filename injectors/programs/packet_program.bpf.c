/* The packet program: loses, doubles and damages packets at a clsact hook until a deadline.
 *
 * A packet here is what the network stack hands over: with segmentation offload that is up to 64 kB of a TCP flow, and
 * all of it is lost or doubled together. ARP and neighbour discovery are packets like any other and are lost too, as on
 * a bad cable.
 *
 *   lost        TC_ACT_STOLEN: the sender's stack is told that it went out; TC_ACT_SHOT would tell it of a drop
 *   duplicated  a clone takes the same way once more; a mark in its tc_index keeps it from being doubled again
 *   corrupted   a bit of the IP header is turned over, in a place that the receiving stack itself always checks (below)
 *
 * Everything that is not lost goes on to the next filter. When that is a redirect of ours, packets skip it once the
 * deadline has passed: the redirect ends with the program.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "injectors/programs/packet_program.h"

#define MARK_OF_A_CLONE 0xfa01

struct packet_state {
    struct bpf_spin_lock lock;
    __u32 bad;
    __u64 packets;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct packet_settings);
} rb_settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct packet_state);
} rb_state SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct packet_counts);
} rb_counts SEC(".maps");

/* Turns over one bit that the receiver is sure to notice, so that the packet is discarded there and TCP sees a loss.
 *
 * A bit of the payload would not do: between two namespaces, and towards any NIC that computes checksums itself, the
 * TCP checksum is not computed yet at this place. It would be computed over the damaged bytes, or not at all, and
 * wrong data would arrive as good. The checksum of an IPv4 header is always there and always checked in software; the
 * bits are those of version, header length, protocol and addresses, so that a NIC that segments by itself and computes
 * this checksum anew does not repair the packet (TCP's checksum covers them too). IPv6 has no such checksum; a wrong
 * version number is what its receiver discards in every case. Other protocols are left alone. */
static __always_inline int corrupt(struct __sk_buff *skb, __u64 seed, __u64 packet) {
    const int is_ipv4 = skb->protocol == bpf_htons(ETH_P_IP);
    __u8 byte = 0;
    if (!is_ipv4 && skb->protocol != bpf_htons(ETH_P_IPV6)) {
        return 0;
    }
    /* A device without Ethernet headers has its IP header elsewhere. */
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &byte, 1) != 0 || byte >> 4 != (is_ipv4 ? 4 : 6)) {
        return 0;
    }
    /* Ten bytes of IPv4: the first, the tenth and the eight of the addresses. */
    const __u32 bit = packet_random_below(seed, packet, PACKET_BIT, is_ipv4 ? 80 : 4);
    const __u32 chosen = bit / 8;
    const __u32 at = ETH_HLEN + (chosen == 0 ? 0 : chosen == 1 ? 9 : 10 + chosen);
    if (bpf_skb_load_bytes(skb, at, &byte, 1) != 0) {
        return 0;
    }
    byte ^= 0x80 >> (bit % 8);
    return bpf_skb_store_bytes(skb, at, &byte, 1, BPF_F_RECOMPUTE_CSUM) == 0;
}

static __always_inline int duplicate(struct __sk_buff *skb, const struct packet_settings *settings) {
    const __u32 former = skb->tc_index;
    skb->tc_index = MARK_OF_A_CLONE;
    const long cloned = bpf_clone_redirect(skb, settings->ifindex, settings->arrives ? BPF_F_INGRESS : 0);
    skb->tc_index = former;
    return cloned == 0;
}

SEC("tc")
int rb_packets(struct __sk_buff *skb) {
    const __u32 only = 0;
    const struct packet_settings *settings = bpf_map_lookup_elem(&rb_settings, &only);
    struct packet_state *state = bpf_map_lookup_elem(&rb_state, &only);
    struct packet_counts *counts = bpf_map_lookup_elem(&rb_counts, &only);
    if (!settings || !state || !counts) {
        return TC_ACT_UNSPEC;
    }
    if (skb->tc_index == MARK_OF_A_CLONE) {
        skb->tc_index = 0;
        return TC_ACT_UNSPEC;
    }
    if (bpf_ktime_get_boot_ns() >= settings->deadline_ns) {
        return settings->ends_redirect ? TC_ACT_OK : TC_ACT_UNSPEC;
    }
    if (!settings->loss && !settings->bursts && !settings->corrupt && !settings->duplicate) {
        return TC_ACT_UNSPEC;
    }
    bpf_spin_lock(&state->lock);
    const __u64 packet = state->packets++;
    const int lost = packet_is_lost(settings, packet, &state->bad);
    bpf_spin_unlock(&state->lock);
    counts->seen++;
    if (lost) {
        counts->lost++;
        return TC_ACT_STOLEN;
    }
    if (packet_happens(settings, packet, PACKET_IS_DUPLICATED, settings->duplicate) && duplicate(skb, settings)) {
        counts->duplicated++;
    }
    if (packet_happens(settings, packet, PACKET_IS_CORRUPTED, settings->corrupt) &&
        corrupt(skb, settings->seed, packet)) {
        counts->corrupted++;
    }
    return TC_ACT_UNSPEC;
}

/* None of the helpers above is kept for programs under the GPL. */
char rb_license[] SEC("license") = "Apache-2.0";
