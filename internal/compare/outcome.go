package compare

import "hakaru"

// Outcome is the answer of a run: per stratum who is recommended and how sure
// that is, and what was left out on the way. Strata never compete, so there is
// no winner over all of them; State sums them up for one sentence and an exit
// code.
type Outcome struct {
	State State `json:"state"`
	// ViolatesLimit: a recommended variant violates a limit. Only a baseline
	// that nobody may replace can be recommended in spite of that.
	ViolatesLimit bool              `json:"violates_limit"`
	Strata        []Answer          `json:"strata"` // in the order of Experiment.Strata
	Unusable      []UnusableVariant `json:"unusable,omitempty"`
	Complete      int               `json:"complete_blocks"`
	Dropped       int               `json:"dropped_blocks"` // incomplete after all re-runs, left out whole
	VoidTrials    int               `json:"void_trials"`    // calibration included
}

// Answer is the outcome in one stratum.
type Answer struct {
	At    map[string]string `json:"at,omitempty"`
	State State             `json:"state"`
	// Winner is the variant recommended: among the usable ones that are better
	// than the baseline and violate no limit the one with the largest
	// improvement, unless a pair says directly that another is better; otherwise
	// the baseline. Empty where State is StateVoid.
	Winner string `json:"winner,omitempty"`
	// Ties are better than the baseline too, violate no limit, and are not
	// distinguished from Winner: a pair says so directly, or there is no such
	// pair with a verdict and their intervals overlap.
	Ties []string `json:"ties,omitempty"`
	// Excluded were better than the baseline and violate a limit.
	Excluded []string `json:"excluded,omitempty"`
	// Undecided have no verdict against the baseline: too few blocks, or a
	// setting that could not act.
	Undecided []string `json:"undecided,omitempty"`
	// Violated and NotShown are the limits that Winner violates, and those it
	// is not shown to hold.
	Violated []hakaru.Metric `json:"violated,omitempty"`
	NotShown []hakaru.Metric `json:"not_shown,omitempty"`
	Blocks   int             `json:"blocks"` // complete
	Dropped  int             `json:"dropped"`
}

// State says what kind of answer it is.
type State string

const (
	// StateBetter: a variant is better than the baseline and is recommended.
	StateBetter State = "better"
	// StateNoneBetter: every variant has a verdict and none that is better may
	// be recommended: worse, no difference, or better and violating a limit.
	StateNoneBetter State = "none_better"
	// StateSame: no variant differs from the baseline by what matters.
	StateSame State = "same"
	// StateUnclear: nothing is better so far, and some have no verdict.
	StateUnclear State = "unclear"
	// StateVoid: there is nothing to judge by: the baseline is unusable, or
	// every other variant is, or no block at all was complete and some were
	// dropped.
	StateVoid State = "void"
)

// UnusableVariant is a variant that failed every time, by its own doing.
type UnusableVariant struct {
	Variant  string            `json:"variant"`
	At       map[string]string `json:"at,omitempty"`
	Reason   hakaru.VoidReason `json:"reason"`
	Evidence string            `json:"evidence"`
}
