package simulate_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"hakaru"
	"hakaru/internal/plan/simulate"
)

// oneOf is an experiment of a baseline and m other variants.
func oneOf(m int, seed uint64) *hakaru.Experiment {
	exp := &hakaru.Experiment{
		Name: "simulated", Baseline: "base", Goal: hakaru.Throughput,
		Variants: []hakaru.Variant{{Name: "base"}},
		Strata:   []map[string]string{{}},
		Design:   hakaru.Design{Method: hakaru.MethodCompare, Blocks: 28, Matters: 0.03, Seed: seed, Calibrate: 2},
	}
	for i := range m {
		name := fmt.Sprintf("v%d", i+1)
		exp.Variants = append(exp.Variants, hakaru.Variant{Name: name})
		exp.Pairs = append(exp.Pairs, hakaru.Pair{Base: "base", Other: name})
	}
	return exp
}

func run(t *testing.T, exp *hakaru.Experiment, s *simulate.Service, m *simulate.Machine) *simulate.Campaign {
	t.Helper()
	c, err := simulate.Run(exp, s, m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Without any difference, no more than 5 % of campaigns may claim one, however
// many variants there are and whatever the noise is (METHOD.md, table 2).
func TestFalseClaims(t *testing.T) {
	for _, test := range []struct {
		noise     simulate.Noise
		cv        float64
		variants  int
		campaigns int
	}{
		{simulate.Normal, 0.05, 1, 200},
		{simulate.Student3, 0.05, 1, 200},
		{simulate.Outliers, 0.05, 1, 200},
		{simulate.DriftOutliers, 0.02, 1, 200},
		{simulate.DriftOutliers, 0.20, 1, 200},
		{simulate.Normal, 0.05, 4, 100},
		{simulate.DriftOutliers, 0.05, 4, 100},
	} {
		t.Run(fmt.Sprintf("%s %v m=%d", test.noise, test.cv, test.variants), func(t *testing.T) {
			t.Parallel()
			claims := 0
			for seed := range uint64(test.campaigns) {
				exp := oneOf(test.variants, seed)
				c := run(t, exp, &simulate.Service{}, simulate.NewMachine(test.noise, test.cv, seed))
				for _, x := range c.Comparisons {
					if x.Verdict == hakaru.Better || x.Verdict == hakaru.Worse {
						claims++
						break
					}
				}
			}
			t.Logf("%d of %d campaigns", claims, test.campaigns)
			// More than 5 %, beyond what so few campaigns may show by chance
			// once in a hundred times. (Of 3000 with normal noise and m = 4,
			// 3.0 % had a claim; with t3, 3.3 %.)
			chance := distuv.Binomial{N: float64(test.campaigns), P: 0.05}.Survival(float64(claims - 1))
			if claims > 0 && chance < 0.01 {
				t.Errorf("a false claim in %d of %d campaigns, want at most 5 %%", claims, test.campaigns)
			}
		})
	}
}

// Power and cost near METHOD.md, table 3.
func TestPower(t *testing.T) {
	for _, test := range []struct {
		effect, cv float64
		want       hakaru.Verdict
		share      float64 // percent of table 3
		blocks     float64
	}{
		{0, 0.02, hakaru.Same, 85, 20},
		{0.03, 0.02, hakaru.Better, 88, 17},
		{0.05, 0.02, hakaru.Better, 99, 12},
		{0.05, 0.05, hakaru.Better, 65, 22},
		{0.10, 0.05, hakaru.Better, 99, 13},
		{0.30, 0.05, hakaru.Better, 100, 6},
		{0.30, 0.20, hakaru.Better, 96, 16},
	} {
		t.Run(fmt.Sprintf("%+.0f %% at %v", 100*test.effect, test.cv), func(t *testing.T) {
			t.Parallel()
			const campaigns = 80
			hits, blocks := 0, 0
			s := &simulate.Service{Effect: map[string]float64{"v1": math.Log1p(test.effect)}}
			for seed := range uint64(campaigns) {
				exp := oneOf(1, seed)
				c := run(t, exp, s, simulate.NewMachine(simulate.DriftOutliers, test.cv, 1000+seed))
				if c.Verdict(exp, "v1") == test.want {
					hits++
				}
				blocks += (len(c.History) - 2) / 2
			}
			share, mean := 100*float64(hits)/campaigns, float64(blocks)/campaigns
			t.Logf("%s in %.0f %% (table: %.0f), %.1f blocks (table: %.1f)", test.want, share, test.share, mean, test.blocks)
			p := test.share / 100
			// Three standard errors, and one campaign where the table says all.
			if slack := 100 * (3*math.Sqrt(p*(1-p)/campaigns) + 1.0/campaigns); math.Abs(share-test.share) > slack {
				t.Errorf("%s in %.0f %%, want %.0f ± %.0f", test.want, share, test.share, slack)
			}
			if math.Abs(mean-test.blocks) > 3 {
				t.Errorf("%.1f blocks, want about %.1f", mean, test.blocks)
			}
		})
	}
}
