package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hakaru/internal/watch/kernel"
)

// Abandoned lists the records of dead agents, which Sweep would end, also where
// others cannot be read. It changes nothing and costs a directory listing.
func Abandoned(stateDir string) ([]string, error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	boot, err := kernel.BootID()
	if err != nil {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	var left []string
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		_, orphaned, err := Dir{stateDir}.Orphan(e.Name(), boot)
		if err != nil {
			errs = append(errs, fmt.Errorf("look for leftovers: %w", err))
		}
		if orphaned {
			left = append(left, e.Name())
		}
	}
	return left, errors.Join(errs...)
}
