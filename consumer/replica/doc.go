// Package replica decides when a fetch should go on with another replica: the
// upper level of 2LCCM ("Two-Level Congestion Control Mechanism for
// Information-Centric Networking"). The lower level, package cc, adapts the
// rate to light congestion; this one leaves a replica whose path is heavily
// congested or silent.
//
// The paper's equations, with the state per fetch that they need:
//
//	(1) LossFlag = consecutive timeouts > k
//	(2) RttFlag  = (RTTcurrent - RTTbase)/RTTbase > δ
//	(3) heavy    = LossFlag or RttFlag, light otherwise
//	(4) switch if heavy and SwitchTime < Rem/CurrentRate - Rem/FutureRate
//
// and, beside them, a transmission that is interrupted is continued elsewhere
// unconditionally. The paper gives no values. Those of [Config] are chosen as
// follows: δ lies between 1.0, the most that BBR's own queue can add (its
// window is twice the bandwidth-delay product), and 1.5, the paper's event;
// RTTcurrent is the smallest of a round trip, which jitter does not raise, and
// has to exceed the bound in three rounds in a row, not while the rate still
// grows as at a start; RTTbase is the minimum of ten seconds before these
// rounds; CurrentRate is the mean of a second, or ten RTTbase, but not less than
// what the path gave in a round under congestion within half a second, since
// controllers pause; FutureRate is the rate that the candidate had within the
// last minute, or 0.7 of the highest rate of the last ten seconds, since nobody
// advertises a capacity; SwitchTime follows what earlier switches cost.
//
// It does not flap: two seconds after a switch congestion causes none, a
// replica that was left is returned to at most once in ten seconds, and what is
// remembered of it is the rate that it was left with.
//
// The package is a state machine that is told the time, and allocates nothing
// after New. It knows replicas by number; how to reach them is the fetch's
// business.
package replica
