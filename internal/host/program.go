package host

import (
	"context"
	"errors"

	"hakaru"
	"hakaru/internal/link"
	"hakaru/internal/load"
	"hakaru/internal/load/program"
)

// NoProgramError says that the load program is not on the load host.
type NoProgramError struct {
	Message string
	Install string
}

func (e *NoProgramError) Error() string { return e.Message }

// Hint says how to get it.
func (e *NoProgramError) Hint() string { return e.Install }

const codeNoProgram = "no_program"

// LinkError lets the hint cross a link.
func (e *NoProgramError) LinkError() link.Error {
	return link.Error{Code: codeNoProgram, Message: e.Message, Hint: e.Install}
}

// findProgram looks for the load program, so that one that is missing is told
// before anything is started, and puts its version into the record.
func findProgram(ctx context.Context, spec *hakaru.ProgramSpec, env *hakaru.Environment) error {
	if spec == nil {
		return nil
	}
	path, version, err := program.Version(ctx, *spec)
	var missing *program.MissingError
	if errors.As(err, &missing) {
		return &NoProgramError{Message: missing.Error(), Install: missing.Install}
	}
	if err != nil {
		return err
	}
	if version == "" {
		return nil // a command of one's own has none to say
	}
	if env.Programs == nil {
		env.Programs = map[string]string{}
	}
	env.Programs[path] = version
	return nil
}

// loadProgram is Load by a program. It returns when the last bucket is whole and
// whoever watches has seen it.
func (l *Local) loadProgram(ctx context.Context, place hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	report, err := program.Run(ctx, spec, place.Names, l.settings.Environ, w, emit)
	var late *load.LateError
	if errors.As(err, &late) {
		return report, &LateError{Message: err.Error()}
	}
	if err != nil {
		return report, err
	}
	return report, program.Settle(ctx, report, w.Start)
}
