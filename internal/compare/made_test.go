package compare_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"hakaru"
	"hakaru/internal/compare"
)

// experiment has a baseline "base" and the other variants, each against it.
func experiment(others ...string) *hakaru.Experiment {
	exp := &hakaru.Experiment{
		Name: "made", Baseline: "base", Goal: hakaru.Throughput,
		Variants: []hakaru.Variant{{Name: "base"}},
		Strata:   []map[string]string{{}},
		Design:   hakaru.Design{Method: hakaru.MethodCompare, Blocks: 28, Matters: 0.03},
	}
	for _, v := range others {
		exp.Variants = append(exp.Variants, hakaru.Variant{Name: v})
		exp.Pairs = append(exp.Pairs, hakaru.Pair{Base: "base", Other: v})
	}
	return exp
}

// made is a history under construction.
type made struct {
	exp     *hakaru.Experiment
	at      map[string]string
	n       int
	history []hakaru.Result
}

func history(exp *hakaru.Experiment) *made { return &made{exp: exp, at: exp.Strata[0]} }

func (m *made) result(variant string, attempt int) *hakaru.Result {
	m.history = append(m.history, hakaru.Result{
		Trial:  hakaru.Trial{Seq: len(m.history) + 1, Phase: hakaru.Compare, Block: m.n, Attempt: attempt, Variant: variant, At: m.at},
		WarmUp: time.Second, Window: 10 * time.Second, Took: 12 * time.Second,
	})
	return &m.history[len(m.history)-1]
}

func (m *made) ran(variant string, attempt int, goal float64) *hakaru.Result {
	r := m.result(variant, attempt)
	r.Measurements = []hakaru.Measurement{{Metric: m.exp.Goal, Value: goal}}
	return r
}

func (m *made) void(variant string, attempt int, reason hakaru.VoidReason) {
	m.result(variant, attempt).Void = &hakaru.Void{Reason: reason, Evidence: "made so"}
}

// block adds a block: the baseline at 1000 and each variant at its ratio to it,
// with a little noise that follows from the block's number.
func (m *made) block(ratios map[string]float64) *made {
	m.n++
	rng := rand.New(rand.NewPCG(uint64(m.n), 1))
	for _, v := range m.exp.Variants {
		ratio, in := ratios[v.Name]
		if v.Name == "base" {
			ratio, in = 1, true
		}
		if in {
			m.ran(v.Name, 1, 1000*ratio*(1+0.001*rng.NormFloat64()))
		}
	}
	return m
}

func (m *made) blocks(n int, ratios map[string]float64) *made {
	for range n {
		m.block(ratios)
	}
	return m
}

func (m *made) compare() []hakaru.Comparison {
	return compare.Compare(m.exp, compare.Freeze(m.exp, nil), m.history)
}

func (m *made) judge() compare.Outcome {
	frozen := compare.Freeze(m.exp, nil)
	return compare.Judge(m.exp, frozen, m.history, compare.Compare(m.exp, frozen, m.history), compare.Limits(m.exp, m.history))
}

func codes(c hakaru.Comparison) string {
	text := ""
	for _, w := range c.Warnings {
		text += " " + w.Code
	}
	return text
}

func short(c hakaru.Comparison) string {
	return fmt.Sprintf("%s/%s %s %d%s", c.Other, c.Base, c.Verdict, c.Blocks, codes(c))
}
