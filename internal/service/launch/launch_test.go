package launch

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"hakaru"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEnvironment(t *testing.T) {
	empty := ""
	got := Environment([]string{"A=1", "HAKARU_SECRET=x", "B=2", "C=3"},
		[]hakaru.EnvVar{{Name: "B"}, {Name: "C", Value: &empty}}, "m.1")
	if want := []string{"A=1", "C=", "HAKARU_MARK=m.1"}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	value := "b"
	got = Environment([]string{"A=a", "HAKARU_STATE=x", "GONE=1", "B=a"},
		[]hakaru.EnvVar{{Name: "B", Value: &value}, {Name: "GONE"}, {Name: "HAKARU_MARK", Value: &value}}, "")
	if want := []string{"A=a", "B=b"}; !slices.Equal(got, want) {
		t.Errorf("without a mark %q, want %q", got, want)
	}
}

func TestLookUp(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(dir+"/"+name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, want, err string }{
		{"tool", "/nowhere:" + dir, dir + "/tool", ""},
		{"tool", ":", dir + "/tool", ""}, // an empty part is the command's directory
		{"./tool", "", dir + "/tool", ""},
		{dir + "/tool", "", dir + "/tool", ""},
		{"text", dir, "", "is not executable"},
		{"./text", "", "", "is not executable"},
		{"./", "", "", "is a directory"},
		{"tool", "/nowhere", "", "command not found: tool"},
	} {
		got, err := LookUp(c.name, dir, []string{"PATH=" + c.path})
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s in %s: %q, %v", c.name, c.path, got, err)
		}
	}
}

// started starts a shell and waits for its end.
func started(t *testing.T, l *Launcher, p Program) (*Process, error) {
	t.Helper()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Argv, p.Dir, p.Output = append([]string{"sh"}, p.Argv...), "/", out
	process, err := l.Start(p)
	if closeErr := out.Close(); closeErr != nil {
		t.Error(closeErr)
	}
	if err != nil {
		return nil, err
	}
	<-process.Ended()
	process.Reap()
	return process, nil
}

func TestStart(t *testing.T) {
	l := New()
	defer l.Close()
	for _, tt := range []struct {
		line, state string
		code        int
	}{
		{"exit 0", "exit status 0", 0}, {"exit 7", "exit status 7", 7}, {"kill -9 $$", "signal: killed", -1},
	} {
		p, err := started(t, l, Program{Path: "/bin/sh", Argv: []string{"-c", tt.line}})
		if err != nil {
			t.Fatal(err)
		}
		if state, code := p.State(); state != tt.state || code != tt.code || !p.HasEnded() || p.NoCgroup != nil || p.After != nil {
			t.Errorf("%s: %s, %d, %+v", tt.line, state, code, p)
		}
	}
	if _, err := started(t, l, Program{Path: "/etc/passwd"}); err == nil || !strings.HasPrefix(err.Error(), "execute /etc/passwd: ") {
		t.Errorf("no program: %v", err)
	}
	p, err := started(t, l, Program{Path: "/bin/sh", Argv: []string{"-c", "exit 3"}, Cgroup: "/no/such/cgroup"})
	if err != nil || p.NoCgroup == nil {
		t.Errorf("without its cgroup: %+v, %v", p, err)
	}
}

// A program that runs is known, whatever goes wrong after its start.
func TestStartedAllTheSame(t *testing.T) {
	l := New()
	defer l.Close()
	set := l.setCPUs
	calls := 0
	gone := errors.New("the CPUs are gone")
	l.setCPUs = func(cpus *unix.CPUSet) error {
		if calls++; calls == 2 {
			return errors.Join(gone, set(cpus))
		}
		return set(cpus)
	}
	p, err := started(t, l, Program{Path: "/bin/sh", Argv: []string{"-c", "exit 0"}, CPUs: []int{firstCPU(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := p.State(); !errors.Is(p.After, gone) || state != "exit status 0" {
		t.Errorf("%+v", p)
	}
}

func firstCPU(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	t.Fatal("this process may use no CPU")
	return 0
}
