package refserver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"hakaru/internal/refserver/config"
)

// generation is the workers that were started under one configuration.
type generation struct {
	number int
	config config.Config
	log    *os.File // nil: no request log
}

// newGeneration opens what the workers of a configuration share.
func newGeneration(number int, cfg config.Config) (*generation, error) {
	g := &generation{number: number, config: cfg}
	switch cfg.Log {
	case config.LogOff:
	case config.LogOn:
	default:
		f, err := os.OpenFile(filepath.Clean(cfg.Log), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the request log: %w", err)
		}
		g.log = f
	}
	return g, nil
}

func (g *generation) close() error {
	if g.log == nil {
		return nil
	}
	return g.log.Close()
}

// oneAtATime lets several copiers write to one writer.
type oneAtATime struct {
	mu sync.Mutex
	to io.Writer
}

func (w *oneAtATime) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

func serialised(w io.Writer) io.Writer {
	switch w := w.(type) {
	case nil:
		return io.Discard
	case *os.File:
		return w
	}
	return &oneAtATime{to: w}
}
