//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru/internal/stats"
)

// fact is something about the machine or a program, for the head of the report.
type fact struct{ name, value string }

// row is one run of one client.
type row struct {
	round    int
	cell     string
	client   string
	cpu      float64 // s
	wall     float64 // s
	requests uint64  // as nginx counted them
	note     string  // "cut" where it was ended by force; else why the run does not count
}

const cutNote = "cut"

// counts says whether the run has a figure.
func (r row) counts() bool { return (r.note == "" || r.note == cutNote) && r.requests > 0 && r.cpu > 0 }

// perRequest is CPU time, µs.
func (r row) perRequest() float64 { return r.cpu / float64(r.requests) * 1e6 }

// openRow is one run of hakaru at a fixed rate.
type openRow struct {
	kind     string // "lag" or "truth"
	p50, p99 time.Duration
}

// results is all that was measured; a report can be drawn from it alone.
type results struct {
	facts []fact
	rows  []row
	opens []openRow
}

// Each line of the raw file is of one kind, by its first field; a field holds no
// tab.

func (f fact) line() string { return join("fact", f.name, f.value) }

func (r row) line() string {
	return join("run", strconv.Itoa(r.round), r.cell, r.client, number(r.cpu), strconv.FormatUint(r.requests, 10), number(r.wall), r.note)
}

func (o openRow) line() string { return join(o.kind, o.p50.String(), o.p99.String()) }

func join(fields ...string) string {
	for i, f := range fields {
		fields[i] = strings.Join(strings.FieldsFunc(f, func(r rune) bool { return r == '\t' || r == '\n' || r == '\r' }), " ")
	}
	return strings.Join(fields, "\t") + "\n"
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }

// readRaw reads what was written line by line.
func readRaw(from io.Reader) (*results, error) {
	res := &results{}
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		if err := res.take(strings.Split(lines.Text(), "\t")); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return res, lines.Err()
}

func (res *results) take(f []string) error {
	switch {
	case f[0] == "fact" && len(f) == 3:
		res.facts = append(res.facts, fact{f[1], f[2]})
		return nil
	case f[0] == "run" && len(f) == 8:
		round, err1 := strconv.Atoi(f[1])
		cpu, err2 := strconv.ParseFloat(f[4], 64)
		requests, err3 := strconv.ParseUint(f[5], 10, 64)
		wall, err4 := strconv.ParseFloat(f[6], 64)
		res.rows = append(res.rows, row{round, f[2], f[3], cpu, wall, requests, f[7]})
		return errors.Join(err1, err2, err3, err4)
	case (f[0] == "lag" || f[0] == "truth") && len(f) == 3:
		p50, err1 := time.ParseDuration(f[1])
		p99, err2 := time.ParseDuration(f[2])
		res.opens = append(res.opens, openRow{f[0], p50, p99})
		return errors.Join(err1, err2)
	}
	return fmt.Errorf("%q is no fact, run, lag or truth", strings.Join(f, " "))
}

// figure is the ratio of hakaru's CPU time per request to a peer's.
type figure struct {
	median    float64
	low, high float64 // 95 % interval
	pairs     int
	interval  bool // there were pairs enough for one
}

const level = 0.05

// ratio pairs hakaru's run in a round with the peer's in the same round: what
// the machine did to both cancels. The interval is that of the signed ranks of
// the logarithms, which asks of them only to be symmetric about their centre.
func (res *results) ratio(cell, peer string) (f figure, ok bool) {
	own := map[int]float64{}
	for _, r := range res.rows {
		if r.cell == cell && r.client == subject && r.counts() {
			own[r.round] = r.perRequest()
		}
	}
	var logs []float64
	for _, r := range res.rows {
		if mine, paired := own[r.round]; paired && r.cell == cell && r.client == peer && r.counts() {
			logs = append(logs, math.Log(mine/r.perRequest()))
		}
	}
	if len(logs) == 0 {
		return figure{}, false
	}
	f = figure{median: math.Exp(stats.Median(logs)), pairs: len(logs)}
	if iv, ok := stats.HodgesLehmann(logs, level); ok {
		f.low, f.high, f.interval = math.Exp(iv.Low), math.Exp(iv.High), true
	}
	return f, true
}

// medians are of one client in one cell: CPU µs per request, requests per second
// of the process's life.
func (res *results) medians(cell, client string) (perRequest, rate float64, ok bool) {
	var costs, rates []float64
	for _, r := range res.rows {
		if r.cell == cell && r.client == client && r.counts() {
			costs = append(costs, r.perRequest())
			rates = append(rates, float64(r.requests)/r.wall)
		}
	}
	return stats.Median(costs), stats.Median(rates), len(costs) > 0
}

// goal is a bound of the ratio in a cell.
type goal struct {
	cell, peer string
	most       float64
	stretch    float64 // 0: none
	notWorse   bool    // only not to be shown above most
}

// goals are what hakaru is to hold.
func goals() []goal {
	all := []goal{
		{"same/c1", "wrk", 0.90, 0, false},
		{"same/c8", "wrk", 0.90, 0, false},
		{"same/c64", "wrk", 0.90, 0.82, false},
		{"same/c500", "wrk", 0.70, 0.56, false},
		{"same/4k", "wrk", 0.80, 0.71, false},
		{"same/c64", floorName, 1.12, 0, false},
		{"same/c500", floorName, 1.12, 0, false},
		{"same/4k", floorName, 1.12, 0, false},
	}
	for _, peer := range []struct {
		name string
		most float64
	}{{"bombardier", 0.55}, {"hey", 0.25}, {"vegeta", 0.25}, {"k6", 0.12}} {
		for _, cell := range []string{"same/c1", "same/c8", "same/c64", "same/c500", "same/4k"} {
			all = append(all, goal{cell, peer.name, peer.most, 0, false})
		}
	}
	for _, cell := range []string{"two/c1", "two/c8", "two/c64", "two/c500", "two/4k", "two/close"} {
		all = append(all, goal{cell, "wrk", 1, 0, true})
	}
	return append(all, goal{"two/1m", "wrk", 0.5, 0, false}, goal{"two/tls", "wrk", 0.95, 0, false})
}

// verdict holds the interval against the goal: a median on the right side is
// not yet one that was shown.
func (g goal) verdict(f figure) string {
	switch {
	case !f.interval:
		return "not shown (too few pairs)"
	case g.notWorse && f.low > g.most:
		return "**not met**"
	case g.notWorse:
		return "met"
	case f.high <= g.most:
		return "met"
	case f.low > g.most:
		return "**not met**"
	case f.median <= g.most:
		return "not shown (the median meets it)"
	}
	return "not shown (the median does not meet it)"
}

// The open loops' goals: the generator's own lateness, and the law of a server
// that stalls, against which 2 % or 0.2 ms are allowed.
const (
	lagP50  = 15 * time.Microsecond
	lagP99  = 60 * time.Microsecond
	lawP50  = 0
	share   = 0.02
	allowed = 200 * time.Microsecond
)

// lawP99 is on paper: of 2000 requests a second, evenly due, those due in the
// stall wait for its end, 100 ms at most; a hundredth of all, a tenth of those,
// wait for more than nine tenths of it.
const lawP99 = stallLength * 9 / 10

func near(got, want time.Duration) bool {
	return float64((got - want).Abs()) <= max(share*float64(want), float64(allowed))
}

// open gives the p50s and p99s of one kind, sorted.
func (res *results) open(kind string) (p50, p99 []time.Duration) {
	for _, o := range res.opens {
		if o.kind == kind {
			p50, p99 = append(p50, o.p50), append(p99, o.p99)
		}
	}
	slices.Sort(p50)
	slices.Sort(p99)
	return p50, p99
}
