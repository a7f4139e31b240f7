package refserver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is a worker as the master sees it. Only the master's loop touches it.
type child struct {
	slot       int
	generation int
	cmd        *exec.Cmd
	control    *os.File
	started    time.Time
	ready      bool
	replace    bool      // it asked for a replacement, and serves until there is one
	leaving    bool      // it was told to drain or stop, or was killed on purpose
	deadline   time.Time // killed when it has not become ready, or not ended, by then
	why        string    // what it said was wrong
}

// event is what a worker said, or that it ended.
type event struct {
	child *child
	word  string // one of the say… words; "" when it has ended
	err   error  // of the end
}

// spawn starts a worker. It must be called on the thread that lives as long as
// the master, as a worker is killed with the thread that started it.
func (m *master) spawn(g *generation, events chan<- event, readers *sync.WaitGroup) (*child, error) {
	slot, err := m.board.take(g.number)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	free := func() { m.board.all[slot].state.Store(stateFree) }
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		free()
		return nil, fmt.Errorf("start a worker: make its link: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "worker's end")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		free()
		return nil, errors.Join(fmt.Errorf("start a worker: make its link: %w", err), unix.Close(pair[0]))
	}
	ours := os.NewFile(uintptr(pair[0]), "worker")
	fail := func(err error) (*child, error) {
		free()
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), ours.Close())
	}
	s := setup{Config: g.config, Master: os.Getpid(), Slot: slot, Generation: g.number, Serial: m.board.started.Load(), Name: filepath.Base(m.opts.Args[0])}
	cmd := &exec.Cmd{
		Path: m.opts.Exe, Args: m.opts.Args, Env: m.env, Stdout: m.opts.Stdout, Stderr: m.opts.Stderr,
		ExtraFiles:  []*os.File{theirs, m.board.file},
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	for _, l := range m.listeners {
		s.Listen = append(s.Listen, l.Address)
		cmd.ExtraFiles = append(cmd.ExtraFiles, l.File())
	}
	if g.log != nil {
		s.Log = true
		cmd.ExtraFiles = append(cmd.ExtraFiles, g.log)
	}
	line, err := json.Marshal(s)
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	m.board.all[slot].pid.Store(uint64(cmd.Process.Pid))
	c := &child{slot: slot, generation: g.number, cmd: cmd, control: ours, started: time.Now()}
	c.deadline = c.started.Add(readyTime)
	// If it is dead already its end says why; the socket's buffer holds the line.
	_, _ = ours.Write(append(line, '\n'))
	readers.Go(func() {
		for lines := bufio.NewScanner(ours); lines.Scan(); {
			events <- event{child: c, word: lines.Text()}
		}
		err := cmd.Wait()
		events <- event{child: c, err: err}
	})
	return c, nil
}

// tell says a word to a worker. One that is dead is heard of by its end.
func (c *child) tell(word string) { _, _ = c.control.Write([]byte(word + "\n")) }

func (c *child) kill() {
	c.leaving = true
	_ = c.cmd.Process.Kill() // ended already, or it works
}

// end describes how it ended, in words.
func (c *child) end(err error) string {
	text := "exit status 0"
	if err != nil {
		text = err.Error()
	}
	if c.why != "" {
		text += ": " + c.why
	}
	return text
}
