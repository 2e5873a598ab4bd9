package cdnbench

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is one figure of a report. Name is its file without ending.
type Plot struct {
	Name    string `json:"name"`
	Caption string `json:"caption"`

	XLabel, YLabel string    `json:"-"`
	XLog, YLog     bool      `json:"-"` // YLog: of values above zero
	Lines          []Line    `json:"-"`
	Boxes          []Box     `json:"-"` // beside one another, in this order
	Bars           []BarSet  `json:"-"` // groups of bars, one group per label
	BarLabels      []string  `json:"-"`
	Band           []float64 `json:"-"` // horizontal lines: bounds to meet
	At             []float64 `json:"-"` // vertical lines: events
}

// Line is a series of points, joined unless Points is set.
type Line struct {
	Name   string
	X, Y   []float64
	Points bool
}

// Box is a box plot of values.
type Box struct {
	Name   string
	Values []float64
}

// BarSet is one colour of bars, one value per label of the plot.
type BarSet struct {
	Name   string
	Values []float64
}

// colours are distinguishable for colour-blind readers (Okabe and Ito 2008).
var colours = []color.RGBA{
	{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {213, 94, 0, 255},
	{204, 121, 167, 255}, {86, 180, 233, 255}, {110, 110, 110, 255}, {150, 120, 0, 255},
}

func colour(i int) color.RGBA { return colours[i%len(colours)] }

func points(x, y []float64) plotter.XYs {
	p := make(plotter.XYs, min(len(x), len(y)))
	for i := range p {
		p[i].X, p[i].Y = x[i], y[i]
	}
	return p
}

func (f *Plot) write(dir string) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = f.XLabel, f.YLabel
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.TextStyle.Font.Size = vg.Points(10)
	legend.Padding = vg.Points(3)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(ticks), plot.TickerFunc(ticks)
	p.Add(plotter.NewGrid())
	if f.XLog {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	}
	if f.YLog {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	}
	if err := f.addLines(p, &legend); err != nil {
		return err
	}
	if err := f.addBoxes(p); err != nil {
		return err
	}
	if err := f.addBars(p, &legend); err != nil {
		return err
	}
	if len(f.Lines)+len(f.Boxes)+len(f.Bars) == 0 {
		return fmt.Errorf("nothing to draw")
	}
	dashes := []vg.Length{vg.Points(4), vg.Points(3)}
	if p.X.Min == p.X.Max { // bounds beside a single point need a width
		half := max(math.Abs(p.X.Min)/2, 0.5)
		if f.XLog {
			half = p.X.Min / 2
		}
		p.X.Min, p.X.Max = p.X.Min-half, p.X.Max+half
	}
	for _, y := range f.Band {
		l, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: y}, {X: p.X.Max, Y: y}})
		if err != nil {
			return err
		}
		l.Color, l.Dashes = color.Gray{90}, dashes
		p.Add(l)
	}
	for _, x := range f.At {
		l, err := plotter.NewLine(plotter.XYs{{X: x, Y: p.Y.Min}, {X: x, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		l.Color, l.Dashes = color.Gray{90}, dashes
		p.Add(l)
	}
	// Zero belongs in the picture unless all that happens is far from it.
	if p.Y.Min > 0 && !f.YLog && (len(f.Bars) > 0 || p.Y.Min < 0.6*p.Y.Max) {
		p.Y.Min = 0
	}
	if p.X.Min > 0 && !f.XLog && p.X.Min < 0.1*p.X.Max {
		p.X.Min = 0
	}
	if p.Y.Min < 0 {
		p.Y.Min -= 0.03 * (p.Y.Max - p.Y.Min)
	}
	p.Y.Max += 0.03 * (p.Y.Max - p.Y.Min)
	names := f.names()
	longest := vg.Length(0)
	for _, n := range names {
		longest = max(longest, legend.TextStyle.Width(n))
	}
	// The names stand where they hide nothing: beside the plot, or, long ones,
	// below it.
	margin, below := vg.Points(8), vg.Length(0) // the last tick's label reaches over the axis
	switch {
	case len(names) < 2:
	case longest > maxBeside:
		below = vg.Length(len(names)) * (legend.TextStyle.Height("X") + legendPadding)
		legend.Padding, legend.Top = legendPadding, false
	default:
		margin = 1.2*longest + legend.ThumbnailWidth + vg.Points(14)
	}
	c := vgsvg.New(18*vg.Centimeter, 9*vg.Centimeter+below)
	all := draw.New(c)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	switch {
	case below > 0:
		legend.Draw(draw.Crop(all, vg.Points(30), 0, 0, 0))
	case len(names) > 1:
		legend.Draw(draw.Crop(all, all.Max.X-margin+vg.Points(8), 0, 0, -vg.Points(4)))
	}
	p.Draw(draw.Crop(all, 0, -margin, below+vg.Points(4), -vg.Points(4)))
	w, err := os.Create(filepath.Join(dir, f.Name+".svg"))
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(w); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}

const (
	maxBeside     = 3 * vg.Centimeter // of a name beside the plot
	legendPadding = vg.Length(3)      // between names below it
)

// names are those of the legend.
func (f *Plot) names() (names []string) {
	for _, l := range f.Lines {
		if len(l.X) > 0 {
			names = append(names, l.Name)
		}
	}
	for _, b := range f.Bars {
		names = append(names, b.Name)
	}
	return names
}

func (f *Plot) addLines(p *plot.Plot, legend *plot.Legend) error {
	for i, s := range f.Lines {
		if len(s.X) == 0 {
			continue
		}
		if s.Points {
			sc, err := plotter.NewScatter(points(s.X, s.Y))
			if err != nil {
				return err
			}
			sc.GlyphStyle = draw.GlyphStyle{Color: colour(i), Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
			p.Add(sc)
			legend.Add(s.Name, sc)
			continue
		}
		l, err := plotter.NewLine(points(s.X, s.Y))
		if err != nil {
			return err
		}
		l.Color, l.Width = colour(i), vg.Points(1.4)
		p.Add(l)
		legend.Add(s.Name, l)
	}
	return nil
}

func (f *Plot) addBoxes(p *plot.Plot) error {
	var names []string
	for i, b := range f.Boxes {
		names = append(names, b.Name)
		if len(b.Values) == 0 {
			continue
		}
		box, err := plotter.NewBoxPlot(vg.Points(22), float64(i), plotter.Values(b.Values))
		if err != nil {
			return err
		}
		box.FillColor = colour(i)
		p.Add(box)
	}
	if len(names) > 0 {
		p.NominalX(names...)
		p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	}
	return nil
}

func (f *Plot) addBars(p *plot.Plot, legend *plot.Legend) error {
	width := vg.Points(max(4, 200/float64(max(1, len(f.Bars)*len(f.BarLabels)))))
	for i, s := range f.Bars {
		values := make(plotter.Values, len(s.Values))
		for k, v := range s.Values {
			if !math.IsNaN(v) { // not measured: no bar
				values[k] = v
			}
		}
		b, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = colour(i), 0
		b.Offset = width * vg.Length(float64(i)-float64(len(f.Bars)-1)/2)
		p.Add(b)
		legend.Add(s.Name, b)
	}
	if len(f.Bars) > 0 {
		p.NominalX(f.BarLabels...)
		p.X.Min, p.X.Max = -0.5, float64(len(f.BarLabels))-0.5
	}
	return nil
}

// logTicks labels twos and fives as well where there are few powers of ten.
func logTicks(low, high float64) []plot.Tick {
	t := plot.LogTicks{Prec: -1}.Ticks(low, high)
	if high > 1000*low {
		return t
	}
	for i, x := range t {
		switch math.Round(x.Value / math.Pow(10, math.Floor(math.Log10(x.Value)))) {
		case 2, 5:
			t[i].Label = strconv.FormatFloat(x.Value, 'g', 3, 64)
		}
	}
	return t
}

// ticks are about five round numbers with labels, and as many without between
// them.
func ticks(low, high float64) (t []plot.Tick) {
	if !(high > low) {
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, k := range []float64{5, 2} {
		if (high-low)/(k*step) >= 4 {
			step *= k
			break
		}
	}
	for i := math.Ceil(2 * low / step); i <= 2*high/step; i++ {
		v := plot.Tick{Value: i*step/2 + 0} // no negative zero
		if math.Mod(i, 2) == 0 {
			v.Label = strconv.FormatFloat(v.Value, 'g', 6, 64)
		}
		t = append(t, v)
	}
	return t
}
