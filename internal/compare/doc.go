// Package compare turns results into comparisons. It is the only place where a
// verdict is decided.
//
// It takes an experiment, what was frozen before the first compare block, and
// the results so far; it gives comparisons with intervals and verdicts, limits
// with meets, violates or not shown, and the outcome of the run. The method is
// that of METHOD.md: randomised complete blocks, log ratios within a block,
// looks at planned numbers of blocks only, each at level alpha/(m·J).
//
// Ledger is the reading of a history block by block (which blocks are complete,
// who is unusable, which pairs are decided since when). The planner walks the
// same ledger, so that plan and verdict cannot disagree.
//
// It does not choose trials (plan), word or colour anything for a reader
// (report), or void a trial (diagnose). It asks no clock and touches no file.
package compare
