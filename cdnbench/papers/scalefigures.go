package papers

import (
	"fmt"

	"ndnpop/cdnbench"
)

// scaleFigures reads the results of scale.
type scaleFigures struct{ r *cdnbench.Result }

func (f scaleFigures) at(arm int, metric string) float64 {
	return average(f.r, scaleArms()[arm].name, metric)
}

func (f scaleFigures) text(p scalePlan, catalogue float64) {
	r := f.r
	r.Question = "How much does a tree of a thousand forwarders keep from the origin, and is caching by segments better than caching by files?"
	r.Setup = fmt.Sprintf("An origin with %d regional caches, %d edges below each and %d clients at each edge: %.0f forwarders. %d objects, log-normal around %d kB and rounded to segments, %.0f MB together, asked for with Zipf popularity (exponent %.1f), %.0f requests a second from all clients for %.3g s, from empty caches. Each edge holds %.0f %% of the catalogue's bytes and each regional cache %.0f %%, all evicting what was used longest ago. Segments of %d bytes. ",
		p.fanout[0], p.fanout[1], p.fanout[2], f.at(0, "nodes"), p.objects, scaleMedian/1000, catalogue, scaleZipf, p.rate, p.length.Seconds(), 100*edgeShare, 100*regionalShare, scalePayload) +
		"Caching by files replays the same requests over caches of the same capacities that fetch and keep whole files, whatever part was asked for; its fetches take no time, its headers nothing. With parts, half of the requests want a quarter of the object, anywhere in it. Where nothing else is said clients know the version and its size, as from a manifest; otherwise they ask for the newest first. "
	r.Setup += "Capacities are counted in segments: a store of a few hundred kilobytes would be half empty, because it takes memory by pages."
	r.Calibrated = "Nothing."
	r.Findings = fmt.Sprintf("Whole objects: %.3f of what the edges are asked for is there, and of the rest %.3f at the regional caches (files: %.3f and %.3f); the origin sends %.0f MB for %.0f MB delivered (files: %.0f MB). ",
		f.at(0, "edge_hits"), f.at(0, "regional_hits"), f.at(0, "files_edge_hits"), f.at(0, "files_regional_hits"),
		f.at(0, "origin_mb"), f.at(0, "delivered_mb"), f.at(0, "files_origin_mb")) +
		fmt.Sprintf("For whole objects segments gain nothing: the same bytes are hits, and headers, which files do not pay here, make the difference. With parts the origin sends %.0f MB instead of %.0f MB. ",
			f.at(1, "origin_mb"), f.at(1, "files_origin_mb")) +
		fmt.Sprintf("Asking for the newest version costs: the metadata is fresh for 10 ms and carries the start of the content, so %.0f MB leave the origin instead of %.0f MB, and the first byte comes after %.1f ms instead of %.1f ms. An object that does not change is better fetched by its version.",
			f.at(2, "origin_mb"), f.at(0, "origin_mb"), f.at(2, "first_byte_ms"), f.at(0, "first_byte_ms"))
}

func (f scaleFigures) plots(kept []*scaleRun) {
	arms := scaleArms()
	hits := cdnbench.Plot{Name: "hits", YLabel: "share of hits", Caption: "Hits at each level, of what that level is asked for: segments, and bytes with files."}
	origin := cdnbench.Plot{Name: "origin", YLabel: "from the origin, MB", Caption: "What leaves the origin; with segments, headers included."}
	segments, files := cdnbench.BarSet{Name: "segments"}, cdnbench.BarSet{Name: "files"}
	for i, a := range arms {
		origin.BarLabels = append(origin.BarLabels, a.name)
		segments.Values = append(segments.Values, f.at(i, "origin_mb"))
		files.Values = append(files.Values, f.at(i, "files_origin_mb"))
	}
	origin.Bars = []cdnbench.BarSet{segments, files}
	hits.BarLabels = []string{"edge", "regional"}
	for i, a := range arms[:2] {
		hits.Bars = append(hits.Bars,
			cdnbench.BarSet{Name: a.name + ", segments", Values: []float64{f.at(i, "edge_hits"), f.at(i, "regional_hits")}},
			cdnbench.BarSet{Name: a.name + ", files", Values: []float64{f.at(i, "files_edge_hits"), f.at(i, "files_regional_hits")}})
	}
	time := cdnbench.Plot{Name: "origin-over-time", XLabel: "time, s", YLabel: "from the origin, MB", Caption: "What has left the origin over time, one run each: the caches fill."}
	for i, a := range arms {
		time.Lines = append(time.Lines, cdnbench.Line{Name: a.name, X: kept[i].times, Y: kept[i].origin})
	}
	f.r.Plots = append(f.r.Plots, hits, origin, time)
}

func (f scaleFigures) expect() {
	r := f.r
	failed, low, high := 0.0, inf, 0.0
	for i := range scaleArms() {
		failed += f.at(i, "failed")
		low, high = min(low, f.at(i, "delivered_to_wanted")), max(high, f.at(i, "delivered_to_wanted"))
	}
	r.Expect("forwarders", "a tree of 1,000", f.at(0, "nodes"), 1000, 1000)
	r.Expect("fetches that failed or did not end", "none", failed, -inf, 0)
	r.Expect("bytes delivered to bytes asked for, smallest", "all", low, 1, 1)
	r.Expect("bytes delivered to bytes asked for, largest", "no more", high, 1, 1)
	r.Expect("whole objects: answers of caches, joined Interests and origin to Interests at the edges", "each is accounted for", f.at(0, "answered_to_asked"), 0.99, 1.01)
	r.Expect("whole objects: bytes from the origin to those with files", "no worse, headers included", f.at(0, "origin_to_files"), -inf, 1.05)
	r.Expect("parts: bytes from the origin to those with files", "less", f.at(1, "origin_to_files"), -inf, 0.9)
	r.Expect("parts: hits at the edges to those with files", "no fewer", f.at(1, "edge_hits")/f.at(1, "files_edge_hits"), 0.9, inf)
}
