//go:build !linux

package epoll

import (
	"context"
	"errors"

	"hakaru/internal/load/job"
)

// Fits says why the engine cannot send to a target; nil: it can.
func Fits(*job.Target) error { return errors.New("it is for Linux only") }

// Run implements job.Engine. Nobody calls it, since nothing fits.
func (Engine) Run(context.Context, *job.Job) int { return 0 }
