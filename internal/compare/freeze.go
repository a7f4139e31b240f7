package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/stats"
	"hakaru/internal/unit"
)

// Alpha is the share of runs in which anything at all may be claimed falsely.
const Alpha = 0.05

// firstLooks are the planned looks; after them each is twice the last but one
// (METHOD.md §5 (a): 40, 56, 80, …).
var firstLooks = [...]int{3, 5, 10, 14, 20, 28}

// looksUpTo are the planned looks up to cap, and cap itself.
func looksUpTo(cap int) []int {
	looks := []int{}
	last, before := 0, 0
	for i := 0; ; i++ {
		next := 2 * before
		if i < len(firstLooks) {
			next = firstLooks[i]
		}
		if next > cap {
			break
		}
		looks = append(looks, next)
		before, last = last, next
	}
	if last != cap {
		looks = append(looks, cap)
	}
	return looks
}

// Freeze settles, from the experiment and the calibration trials, what no later
// look at the data may change: how many comparisons and looks share Alpha, and
// how many blocks there are at most. A look at which the level allows no
// signed-rank interval is not planned; leaving it out gives the others more.
func Freeze(exp *hakaru.Experiment, calibration []hakaru.Result) hakaru.Frozen {
	f := hakaru.Frozen{Alpha: Alpha, Matters: exp.Design.Matters, Comparison: max(1, len(exp.Pairs)*len(exp.Strata))}
	if f.Matters <= 0 {
		f.Matters = hakaru.DefaultMatters
	}
	blocks := exp.Design.Blocks
	if blocks <= 0 {
		blocks = hakaru.DefaultBlocks
	}
	first := inStratum(calibration, exp.Strata)
	took, trials := meanTook(first)
	var notes []string
	if exp.Design.Budget > 0 {
		var note string
		blocks, note = afford(exp, calibration, took, blocks)
		notes = append(notes, note)
	}
	f.Looks = looksUpTo(blocks)
	for {
		f.Level = f.Alpha / float64(f.Comparison*len(f.Looks))
		i := slices.IndexFunc(f.Looks, func(n int) bool { return n >= exactFrom && stats.MinimalLevel(n) > f.Level })
		if i < 0 {
			break
		}
		f.Looks = slices.Delete(f.Looks, i, i+1)
	}
	f.Blocks = f.Looks[len(f.Looks)-1]
	if f.Blocks < blocks {
		notes = append(notes, fmt.Sprintf("%d comparisons need more than %d blocks for a signed-rank interval, so the last look is after %d",
			f.Comparison, blocks, f.Blocks))
	}
	rates, without := openRates(exp, calibration)
	if len(without) > 0 && len(calibration) > 0 {
		notes = append(notes, fmt.Sprintf("no open loop at %s: no calibration trial there shows the baseline's capacity", strings.Join(without, ", ")))
	}
	f.Rates = rates
	f.Note = strings.Join(notes, "; ")
	f.Noise = noise(exp, first, f)
	f.Noise.Took, f.Noise.Trials = took, trials
	return f
}

// afford turns the time budget into blocks.
func afford(exp *hakaru.Experiment, calibration []hakaru.Result, took time.Duration, most int) (int, string) {
	if took <= 0 {
		return most, fmt.Sprintf("the budget of %s could not be turned into blocks, since no calibration trial tells how long one takes; %d blocks are planned",
			unit.Duration(exp.Design.Budget), most)
	}
	left := exp.Design.Budget
	for _, r := range calibration {
		if r.Phase == hakaru.Calibrate {
			left -= r.Took
		}
	}
	if exp.Design.Open != nil {
		took += exp.Design.Open.Takes // which the calibration trials lack
	}
	round := took * time.Duration(armCount(exp)*len(exp.Strata))
	fits := max(0, int(left/round))
	blocks := min(max(fits, 1), most)
	note := fmt.Sprintf("a budget of %s less %s for calibration allows %d blocks of %d trials",
		unit.Duration(exp.Design.Budget), unit.Duration((exp.Design.Budget - left).Round(time.Second)), fits, armCount(exp))
	if len(exp.Strata) > 1 {
		note += fmt.Sprintf(" in each of %d strata", len(exp.Strata))
	}
	note += fmt.Sprintf(" at %s a trial", unit.Duration(took.Round(100*time.Millisecond)))
	switch {
	case fits > most:
		note += fmt.Sprintf("; %d are planned, as asked for", most)
	case fits < 1:
		note += "; one is planned all the same, and one gives no verdict"
	case blocks < firstLooks[0]:
		note += fmt.Sprintf(", fewer than the %d of the first look: a verdict is unlikely", firstLooks[0])
	}
	return blocks, note
}

// inStratum are the calibration trials of the first stratum, which show noise and
// time: those of the others settle rates only.
func inStratum(calibration []hakaru.Result, strata []map[string]string) []hakaru.Result {
	var first []hakaru.Result
	for _, r := range calibration {
		if len(strata) == 0 || hakaru.AtKey(r.At) == hakaru.AtKey(strata[0]) {
			first = append(first, r)
		}
	}
	return first
}

// openRates settles the rates of the open loops, each as its share of the median
// throughput of the baseline's calibration trials in that stratum; without names
// the strata of which none counts.
func openRates(exp *hakaru.Experiment, calibration []hakaru.Result) (rates []hakaru.OpenRate, without []string) {
	if exp.Design.Open == nil {
		return nil, nil
	}
	for _, s := range exp.Design.Open.Shares {
		var seen []float64
		for i := range calibration {
			r := &calibration[i]
			if x, ok := r.Measured(hakaru.Throughput); ok && x > 0 && r.Void == nil && r.Phase == hakaru.Calibrate && hakaru.AtKey(r.At) == hakaru.AtKey(s.At) {
				seen = append(seen, x)
			}
		}
		if len(seen) == 0 {
			without = append(without, cmp.Or(hakaru.AtKey(s.At), "any rate"))
			continue
		}
		capacity := stats.Median(seen)
		rates = append(rates, hakaru.OpenRate{At: s.At, Rate: Rate(capacity, s.Share), Share: s.Share, Capacity: capacity, Trials: len(seen)})
	}
	return rates, without
}

// Rate is a share of a capacity in three digits, so that what is printed is what is
// sent.
func Rate(capacity, share float64) float64 {
	rate := capacity * share
	if !(rate > 0) {
		return 0
	}
	// Powers of ten are whole numbers, which divide without a rest in the last digit.
	if step := math.Floor(math.Log10(rate)) - 2; step < 0 {
		by := math.Pow(10, -step)
		return math.Round(rate*by) / by
	} else {
		by := math.Pow(10, step)
		return math.Round(rate/by) * by
	}
}

// armCount is the number of variants that take part in a first block.
func armCount(exp *hakaru.Experiment) int {
	arms := map[string]bool{}
	for _, p := range exp.Pairs {
		arms[p.Base], arms[p.Other] = true, true
	}
	return max(1, len(arms))
}

func meanTook(calibration []hakaru.Result) (mean time.Duration, trials int) {
	var sum time.Duration
	for _, r := range calibration {
		if r.Void == nil && r.Phase == hakaru.Calibrate {
			sum += r.Took
			trials++
		}
	}
	if trials == 0 {
		return 0, 0
	}
	return sum / time.Duration(trials), trials
}

// noise is what the calibration trials say of each metric's spread from run to
// run, and how many blocks that makes to see what matters.
func noise(exp *hakaru.Experiment, calibration []hakaru.Result, f hakaru.Frozen) hakaru.Noise {
	n := hakaru.Noise{CV: map[hakaru.Metric]float64{}, BlocksNeeded: map[hakaru.Metric]int{}}
	for _, metric := range []hakaru.Metric{hakaru.Throughput, hakaru.CPUPerRequest, exp.Goal} {
		var logs []float64
		for i := range calibration {
			r := &calibration[i]
			if metric == hakaru.Throughput && r.Open != nil && r.Open.Whole {
				continue // the rate that was written
			}
			if x, ok := figure(r, metric); ok && x > 0 && r.Void == nil && r.Phase == hakaru.Calibrate {
				logs = append(logs, math.Log(x))
			}
		}
		if cv, ok := stats.SuccessiveCV(logs); ok {
			n.CV[metric] = cv
			n.BlocksNeeded[metric] = stats.BlocksNeeded(cv, math.Log1p(f.Matters), f.Level)
		}
	}
	return n
}
