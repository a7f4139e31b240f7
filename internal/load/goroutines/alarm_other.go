//go:build !linux

package goroutines

import "time"

// exactAlarm is not there: the runtime's timers have to do.
type exactAlarm struct{}

func newExactAlarm() *exactAlarm                 { return nil }
func (*exactAlarm) wait(time.Duration) (ok bool) { return false }
func (*exactAlarm) close()                       {}
