// Package stats has the numbers behind a verdict: intervals from t and from
// signed ranks, intervals of a share, the noise of a series, and a shuffle that
// is the same for ever.
//
// It takes plain numbers, already on the scale where they add (logarithms where
// noise is multiplicative), and gives intervals. It knows nothing of services,
// metrics, variants or verdicts, reads no clock and keeps no state. Quantiles
// and special functions come from gonum; what gonum lacks (the exact signed-rank
// distribution, differences of arms in blocks, the planned number of blocks) is
// here. A level is always the two-sided share of error, 0.05 for 95 %.
package stats
