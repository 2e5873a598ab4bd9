package papers

import (
	"fmt"

	"ndnpop/cdnbench"
)

// cdnFigures reads the results of cdn-sim.
type cdnFigures struct{ r *cdnbench.Result }

func (f cdnFigures) at(arm, metric string) float64 { return average(f.r, arm, metric) }

// The times of HTTP are by formula: a connection takes a round trip to the edge
// before the request leaves, those between the caches are there already.
const (
	httpCold = float64((2*accessRTT + metroRTT + originRTT) / ms)
	httpWarm = float64(2 * accessRTT / ms)
)

func (f cdnFigures) text() {
	r := f.r
	r.Question = "What do caches that know segments, and forwarders that choose next hops, give a content delivery network?"
	r.Setup = cdnSetup + "Loss, where there is any, is 0.08 % per packet and direction between client and edge and 0.01 % elsewhere; each cache holds 2 GB; segments of 8000 bytes (1300 in the experiment on loss, so that one is one packet). A segment is one frame, lost or not as a whole, and links neither repair nor mark, so that what the consumer does shows; but in the experiment on failover their queues mark, as those of ndnpop do, lest a window that fills all queues is asked for anew at once. " +
		"The thesis compares with Apache Traffic Server. Nothing of HTTP runs in virtual time: where a figure of HTTP is shown it is by formula, and cdn-goodput and its like measure the real thing over emulated links."
	r.Calibrated = "Nothing. The thesis' delays are read as round trips, because its 100 ms to the first byte of HTTP are two round trips of 50 ms."
	r.Findings = fmt.Sprintf("20 MB take %.2f s without loss, with it %.2f s with CUBIC, which gives way at every one, and %.2f s with BBR; %.2f s with CUBIC over links that divide segments into six packets, each of which may be lost, and repair them, as UDP links of ndnpop do by themselves; the link alone needs %.2f s. ",
		f.at("goodput", "lossless_s"), f.at("goodput", "lossy_s"), f.at("goodput", "lossy_bbr_s"), f.at("goodput", "repaired_s"), f.at("goodput", "link_s")) +
		fmt.Sprintf("Of %.0f Data lost between edge and client the edge's cache sent %.0f again, %.1f ms (median) after the repeated Interest; what was lost further away, or as an Interest, took %.1f ms. ",
			f.at("loss", "lost_on_access"), f.at("loss", "repaired_from_edge"), f.at("loss", "repair_ms"), f.at("loss", "far_repair_ms")) +
		fmt.Sprintf("The first byte comes after %.1f ms from the origin, discovery of the version included, and after %.1f ms from the edge when the version is known and somebody has asked for the first segment by it (a fetch that discovers the version gets the start of the content with it and never asks). Who asks for the newest version waits %.1f ms although the edge has the content: metadata is fresh for 10 ms, and the question goes to the origin. ",
			f.at("first byte", "cold_ms"), f.at("first byte", "warm_ms"), f.at("first byte", "warm_discovered_ms")) +
		fmt.Sprintf("A change of the intermediate when 10 of 100 MB have been asked for leaves %.1f MB in both caches together after the first pull and %.1f MB after the second; the origins sent %.1f MB in all. ",
			f.at("cache use", "held_after_1_mb"), f.at("cache use", "held_after_2_mb"), f.at("cache use", "origin_mb")) +
		fmt.Sprintf("When the serving intermediate's process is killed the transfer pauses for %.1f ms at most (the thesis has 5.72 ± 3.15 ms between virtual machines of one region; what was under way has to be asked for again from the origin, 30 ms away); when its host vanishes without a word it pauses for %.1f ms, and the consumer takes %.0f segments for lost (the edge asks for all of them again within a few milliseconds, and the queue at the origin has no room for so many Data at once). ",
			f.at("failover", "killed_gap_ms"), f.at("failover", "crashed_gap_ms"), f.at("failover", "crashed_repeats")) +
		fmt.Sprintf("When the serving path gets 100 ms longer and loses 1 %%, best-path (under a CUBIC flow) carries nine tenths by the other one after %.1f s and %.3f of all from 2 s on; best-route, which does not measure, %.3f. Before that both paths are equal, and the flow's own queue makes it change between them.",
			f.at("path switch", "to_90_percent_s"), f.at("path switch", "share_after_2s"), f.at("path switch", "best_route_share"))
}

func (f cdnFigures) plots(kept []cdnKept) {
	k := kept[0]
	gone := cdnbench.Plot{Name: "failover", XLabel: "time, ms", YLabel: "segments arrived", At: []float64{50},
		Caption: "Segments that arrive at the client around the end of the serving intermediate (dashed; the client is 25 ms away from the edge, one way).",
		Lines:   []cdnbench.Line{{Name: "process killed", X: k.goneX, Y: k.goneY}, {Name: "host vanishes", X: k.silentX, Y: k.silentY}}}
	path := cdnbench.Plot{Name: "path-switch", XLabel: "time, s", YLabel: "rate, Mbit/s", At: []float64{3, 5},
		Caption: "What comes to the edge by each intermediate with best-path. At 3 s (dashed) the path that serves gets 100 ms longer and loses 1 %; two seconds later (dashed) the other one should carry at least 90 %.",
		Lines:   []cdnbench.Line{{Name: "gets worse", X: k.shareT, Y: k.share1}, {Name: "the other", X: k.shareT, Y: k.share2}}}
	first := cdnbench.Plot{Name: "first-byte", YLabel: "time to the first byte, ms", BarLabels: []string{"from the origin", "from the edge"},
		Caption: "Time to the first byte. HTTP by formula, with the connections between caches open; the thesis measured 100 to 230 ms for HTTP and 50 to 135 ms for NDN.",
		Bars: []cdnbench.BarSet{
			{Name: "NDN", Values: []float64{f.at("first byte", "cold_ms"), f.at("first byte", "warm_ms")}},
			{Name: "HTTP, by formula", Values: []float64{httpCold, httpWarm}},
		}}
	use := cdnbench.Plot{Name: "cache-use", YLabel: "content held, MB", BarLabels: []string{"after pull 1", "after pull 2"},
		Caption: "Content in both intermediates when the edge changes from one to the other after 10 of 100 MB. The thesis has 200 MB for HTTP after two pulls (dashed): the whole object in each.",
		Band:    []float64{200},
		Bars:    []cdnbench.BarSet{{Name: "NDN", Values: []float64{f.at("cache use", "held_after_1_mb"), f.at("cache use", "held_after_2_mb")}}}}
	repair := cdnbench.Plot{Name: "repair", YLabel: "time to repair, ms", BarLabels: []string{"lost between edge and client", "lost further away, or as Interest"},
		Caption: "Median time from a repeated Interest to its Data, by where it was lost. Only what the edge had passed on lies in its cache; the round trip to the edge is 50 ms, to the origin 80 ms. The bound for the first is dashed.",
		Band:    []float64{1.2 * float64(accessRTT/ms)},
		Bars:    []cdnbench.BarSet{{Name: "NDN", Values: []float64{f.at("loss", "repair_ms"), f.at("loss", "far_repair_ms")}}},
	}
	f.r.Plots = append(f.r.Plots, first, repair, use, gone, path)
}

func (f cdnFigures) expect() {
	r := f.r
	r.Expect("loss: share of the Data lost on the access link that the edge repairs", "repaired near", f.at("loss", "repaired_share"), 0.95, 1.05)
	r.Expect("loss: median repair to the RTT of the cache", "repaired near", f.at("loss", "repair_ms")/float64(accessRTT/ms), -inf, 1.2)
	r.Expect("20 MB with losses that the links repair, to without losses", "as if nothing were lost", f.at("goodput", "repaired_s")/f.at("goodput", "lossless_s"), -inf, 1.25)
	r.Expect("first byte from the origin to the path's RTT", "50 to 135 ms", f.at("first byte", "cold_to_path"), 1, 1.1)
	r.Expect("first byte from the edge to the path's RTT", "50 to 135 ms", f.at("first byte", "warm_to_path"), 1, 1.1)
	r.Expect("cache use: MB held after pull 1", "100; HTTP 200", f.at("cache use", "held_after_1_mb"), 99, 101)
	r.Expect("cache use: MB held after pull 2", "110; HTTP 200", f.at("cache use", "held_after_2_mb"), 108.9, 111.1)
	high := max(f.at("partial", "1mb_to_missing"), f.at("partial", "5mb_to_missing"), f.at("partial", "20mb_to_missing"))
	r.Expect("partial: packets from upstream to missing segments, largest", "only what is missing; metadata is one packet", high, 1, 1.01)
	floor := float64((metroRTT + originRTT) / ms)
	// A gap shorter than that RTT would be that of a kill which hit nobody.
	gaps := r.Arms["failover"]["killed_gap_ms"]
	r.Expect("failover: longest gap after a kill, ms", "5.72 within a region; here the RTT from the edge to the origin and 5 ms", gaps.Max, floor, floor+5)
	r.Expect("failover: longest gap after a kill, smallest of the runs, ms", "as above", gaps.Min, floor, floor+5)
	r.Expect("failover: segments that the consumer takes for lost from the kill on", "transparent", r.Arms["failover"]["killed_repeats"].Max, -inf, 0)
	r.Expect("path switch: share of the better path from 2 s on", "follows the better path", f.at("path switch", "share_after_2s"), 0.9, inf)
	r.Expect("path switch: time until the better path has 90 %, s", "follows the better path", f.at("path switch", "to_90_percent_s"), -inf, 2)
}
