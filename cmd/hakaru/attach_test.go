package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A real nginx and a real MariaDB stand for services that something else starts:
// daemons of the test, in directories of their own. Whatever happens to a run,
// they are afterwards as they were before it.

// freeAddress is one on which nobody listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// eventually asks until there is no error; the test's own limit is what a
// machine under load may take.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) // there is no event for what another program does
	}
}

func pidIn(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// endDaemon ends a daemon of the test by its pid file.
func endDaemon(t *testing.T, file string) {
	pid := pidIn(file)
	if pid == 0 {
		return
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil {
			return // it has ended
		}
		for range 250 {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	t.Errorf("daemon %d does not end", pid)
}

// nginxAt is a running nginx whose answers name the setting that is in force.
type nginxAt struct {
	dir, address string
	before       string // the config and who may read it
}

const nginxConf = `worker_processes %s;
pid nginx.pid;
error_log error.log;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen %s; location / { return 200 "workers=%[1]s\n"; } }
}
`

// startNginx starts one as a daemon and writes the scripts of the person who
// runs it: replace stops it and starts it again, undo puts the config back
// first, reload leaves the master.
func startNginx(t *testing.T) nginxAt {
	t.Helper()
	n := nginxAt{dir: t.TempDir(), address: freeAddress(t)}
	conf := fmt.Sprintf(nginxConf, "1", n.address)
	write(t, filepath.Join(n.dir, "nginx.conf"), conf, 0o640)
	write(t, filepath.Join(n.dir, "kept.conf"), conf, 0o640)
	write(t, filepath.Join(n.dir, "edit.conf"), fmt.Sprintf(nginxConf, "{workers}", n.address), 0o644)
	command := fmt.Sprintf("nginx -p %s/ -c nginx.conf", n.dir)
	head := "#!/bin/sh\nunset TMPDIR\ncd " + n.dir + " || exit 1\n"
	replace := head + `pid=$(cat nginx.pid 2>/dev/null)
if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
  kill -QUIT "$pid"
  while [ -e nginx.pid ]; do sleep 0.02; done
fi
exec ` + command + "\n"
	write(t, filepath.Join(n.dir, "replace"), replace, 0o755)
	write(t, filepath.Join(n.dir, "reload"), head+"exec "+command+" -s reload\n", 0o755)
	write(t, filepath.Join(n.dir, "undo"), head+"cat kept.conf > nginx.conf || exit 1\nexec ./replace\n", 0o755)
	n.before = n.state(t)
	start := exec.Command("nginx", "-p", n.dir+"/", "-c", "nginx.conf")
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("start nginx: %v\n%s", err, out)
	}
	t.Cleanup(func() { endDaemon(t, filepath.Join(n.dir, "nginx.pid")) })
	n.same(t)
	return n
}

// state is the config byte for byte, with mode and owner.
func (n nginxAt) state(t *testing.T) string {
	t.Helper()
	return fileState(t, filepath.Join(n.dir, "nginx.conf"))
}

func fileState(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%s %d:%d\n%s", info.Mode(), owner.Uid, owner.Gid, text)
}

// answer is what nginx says, or why it does not.
func (n nginxAt) answer() (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + n.address + "/")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(text)), err
}

// same checks that nginx is as it was, in its file and in force.
func (n nginxAt) same(t *testing.T) {
	t.Helper()
	if now := n.state(t); now != n.before {
		t.Errorf("nginx.conf was\n%s\nand is\n%s", n.before, now)
	}
	eventually(t, "nginx with its own settings", func() error {
		got, err := n.answer()
		if err == nil && got != "workers=1" {
			err = fmt.Errorf("it answers %q", got)
		}
		return err
	})
}

// experiment attaches to it; the first of the words is the restart script.
func (n nginxAt) experiment(restart string) string {
	return strings.NewReplacer("DIR", n.dir, "ADDRESS", n.address, "RESTART", restart).Replace(`
service:
  settings: DIR/edit.conf
  attach: {get: "http://ADDRESS/", body: "workers=", timeout: 20s}
  apply: sh -c 'cat "$1" > DIR/nginx.conf' sh {file}
  restart: DIR/RESTART
  undo: DIR/undo
factors: {workers: [2, 3]}
prove:
  workers: [{http: "http://ADDRESS/", contains: {"2": "workers=2", "3": "workers=3"}}]
load: {http: {url: "http://ADDRESS/", connections: 2, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {blocks: 2, calibrate: 1}
`)
}

// clean checks that nothing of hakaru is left.
func (s site) clean() {
	s.t.Helper()
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		s.t.Errorf("left behind:\n%s", left)
	}
}

// gone waits until an agent whose conductor was killed has put back what it
// changed and has ended.
func (s site) gone() {
	s.t.Helper()
	eventually(s.t, "what the agent of a killed conductor leaves", func() error {
		if left := look(filepath.Join(s.dir, "state")); left != "" {
			return fmt.Errorf("left behind:\n%s", left)
		}
		return nil
	})
}

// failed runs a command that is to end with a code, and returns what it said.
func (s site) failed(code int, args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	exit, _ := err.(*exec.ExitError)
	if exit == nil && code != 0 || exit != nil && exit.ExitCode() != code {
		s.t.Fatalf("hakaru %s: %v, want exit code %d\n%s", strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not said in:\n%s", part, text)
		}
	}
}

// TestAttachedNginx measures an nginx that hakaru did not start, restarted as a
// whole and reloaded: the settings are in force, proved by the answers of both
// variants, and afterwards it is as before, and is nobody's but its own.
func TestAttachedNginx(t *testing.T) {
	for _, restart := range []string{"replace", "reload"} {
		t.Run(restart, func(t *testing.T) {
			t.Parallel()
			n := startNginx(t)
			s := newSite(t, n.experiment(restart))
			s.output("run", "--format", "json", "app.yaml")
			n.same(t)
			s.clean()
			if r := s.report(); r.Run.State != "done" || len(r.Trials) != 5 {
				t.Errorf("stored: %+v", r)
			} else {
				for _, trial := range r.Trials {
					if len(trial.Void) > 0 && string(trial.Void) != "null" {
						t.Errorf("trial %d is void: %s", trial.Seq, trial.Void)
					}
				}
			}
			// The one that runs now was started by undo.
			master := pidIn(filepath.Join(n.dir, "nginx.pid"))
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", master))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(environ, []byte("HAKARU_")) {
				t.Errorf("nginx carries a mark of hakaru's: %q", environ)
			}
			cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", master))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(cgroup, []byte("hakaru")) {
				t.Errorf("nginx is in a cgroup of hakaru's: %s", cgroup)
			}
			// A sweep does not take it for a leftover.
			s.output("list")
			if now := pidIn(filepath.Join(n.dir, "nginx.pid")); now != master {
				t.Errorf("nginx was pid %d and is %d after a sweep", master, now)
			}
			n.same(t)
		})
	}
}

// TestAttachedFails breaks each part: nothing but the message is left of it.
func TestAttachedFails(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string // of the experiment
		said     []string
	}{
		{"apply", `apply: sh -c 'cat "$1" > DIR/nginx.conf' sh {file}`, `apply: sh -c 'cat "$1" > DIR/nginx.conf; echo no room for it; exit 7' sh {file}`,
			[]string{"apply failed (exit status 7)", "no room for it"}},
		{"apply is not there", "apply: sh ", "apply: no-such-command ", []string{"apply: command not found: no-such-command"}},
		{"restart", "restart: DIR/replace", "restart: sh -c 'echo worker_processes many; >> DIR/nginx.conf; sed -i s/worker_processes/worker_proceses/ DIR/nginx.conf; exec DIR/reload'",
			[]string{"restart failed (exit status 1)", `unknown directive "worker_proceses"`}},
		{"restart takes it down", "restart: DIR/replace", "restart: sh -c 'sed -i s/worker_processes/worker_proceses/ DIR/nginx.conf; exec DIR/replace'",
			[]string{"restart failed (exit status 1)", `unknown directive "worker_proceses"`}},
		{"does not come up", "restart: DIR/replace", "restart: sh -c 'kill -QUIT $(cat DIR/nginx.pid)'",
			[]string{"did not answer rightly within 4s after restart", "connection refused", "its own log tells why"}},
		{"overruns", "restart: DIR/replace", "restart: sleep 1000", []string{"restart was ended: it took longer than 4s"}},
		{"wrong answer", `body: "workers="`, `body: "workers=1"`, []string{"did not answer rightly", "workers=2", `"workers=1" is wanted`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := startNginx(t)
			in := strings.NewReplacer("DIR", n.dir)
			text := strings.Replace(n.experiment("replace"), in.Replace(c.from), in.Replace(c.to), 1)
			text = strings.Replace(text, "timeout: 20s", "timeout: 4s", 1)
			if c.name == "restart" || c.name == "restart takes it down" {
				text = strings.Replace(text, "timeout: 4s", "timeout: 20s", 1)
			}
			s := newSite(t, text)
			contains(t, s.failed(1, "try", "app.yaml"), c.said...)
			n.same(t)
			s.clean()
		})
	}
}

// TestAttachedIsNotUp: nothing is changed for a service that does not answer.
func TestAttachedIsNotUp(t *testing.T) {
	n := startNginx(t)
	elsewhere := freeAddress(t)
	text := strings.Replace(n.experiment("replace"), `attach: {get: "http://`+n.address, `attach: {get: "http://`+elsewhere, 1)
	text = strings.Replace(text, "apply: sh -c '", "apply: sh -c 'touch "+n.dir+"/applied; ", 1)
	s := newSite(t, text)
	contains(t, s.failed(1, "try", "app.yaml"), "it is not up", "connection refused", "hakaru does not start it")
	if _, err := os.Stat(filepath.Join(n.dir, "applied")); err == nil {
		t.Error("apply was run")
	}
	n.same(t)
	s.clean()
}

// TestAttachedUndoFails: it is said with the command to run by hand, again by
// every command, until it can be put back; and no other trial is measured.
func TestAttachedUndoFails(t *testing.T) {
	n := startNginx(t)
	write(t, filepath.Join(n.dir, "locked"), "", 0o644)
	undo := filepath.Join(n.dir, "careful")
	write(t, undo, "#!/bin/sh\nif [ -e "+n.dir+"/locked ]; then echo it is locked >&2; exit 5; fi\nexec "+n.dir+"/undo\n", 0o755)
	text := strings.Replace(n.experiment("replace"), "undo: "+n.dir+"/undo", "undo: "+undo, 1)
	s := newSite(t, text)
	said := s.failed(1, "run", "app.yaml")
	contains(t, said, "NOT put back", "undo failed (exit status 5)", "it is locked", "run by hand: cd "+s.dir+" && "+undo)
	if strings.Contains(said, "trial 2 ") {
		t.Errorf("a second trial was run on what the first one left:\n%s", said)
	}
	if n.state(t) == n.before {
		t.Fatal("the config is as before: nothing was to be put back")
	}
	contains(t, s.failed(0, "list"), "NOT put back", "run by hand: cd "+s.dir+" && "+undo)
	contains(t, s.failed(1, "run", "app.yaml"), "NOT put back")
	if err := os.Remove(filepath.Join(n.dir, "locked")); err != nil {
		t.Fatal(err)
	}
	said = s.failed(0, "list")
	contains(t, said, "hakaru has tried 3 times", "rm "+filepath.Join(s.dir, "state"))
	// As the message says.
	if out, err := exec.Command("sh", "-c", "cd "+s.dir+" && "+undo).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	notes, err := filepath.Glob(filepath.Join(s.dir, "state", "*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes %v, %v", notes, err)
	}
	if err := os.Remove(notes[0]); err != nil {
		t.Fatal(err)
	}
	n.same(t)
	s.output("run", "--format", "json", "app.yaml")
	n.same(t)
}

// TestAttachedInterrupt sends Ctrl-C in the middle of a trial.
func TestAttachedInterrupt(t *testing.T) {
	n := startNginx(t)
	s := newSite(t, n.experiment("replace"))
	cmd := s.command("run", "app.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "trial 2 ") { // ended; the third is under way
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, strings.Join(said, "\n"))
	}
	n.same(t)
	s.clean()
}

// killSome starts a run, kills the conductor, its service agent or both with
// SIGKILL when the run is so old, and waits until what is left has ended.
func (s site) killSome(victims string, after time.Duration) {
	s.t.Helper()
	cmd := s.command("run", "--format", "json", "app.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	said, begun := make(chan string, 1), make(chan struct{})
	go func() {
		r := bufio.NewReader(stderr)
		first, _ := r.ReadString('\n') // "run … of app": it is in the store now
		close(begun)
		rest, _ := io.ReadAll(r)
		said <- first + string(rest)
	}()
	<-begun
	time.Sleep(after) // the moment is what is tested
	f := familyOf(cmd.Process.Pid)
	for name, pid := range map[string]int{"conductor": f.conductor, "agent": f.service} {
		if strings.Contains(victims, name) && pid != 0 {
			if err := kill9(pid); err != nil && err != syscall.ESRCH {
				s.t.Fatal(err)
			}
		}
	}
	text := <-said
	if err := cmd.Wait(); err != nil && !strings.Contains(victims, "conductor") {
		s.t.Logf("the run ended with %v:\n%s", err, text)
	}
}

// TestAttachedKilledAtAnyMoment kills at twenty moments spread over the life of
// a run: one `hakaru list` puts everything back.
func TestAttachedKilledAtAnyMoment(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 20))
	var swept atomic.Int32
	t.Cleanup(func() {
		if swept.Load() == 0 {
			t.Error("no kill left anything to put back: nothing was tested")
		}
	})
	for i := range 20 {
		victims := []string{"conductor", "agent", "conductor and agent"}[i%3]
		// A run takes about five seconds.
		after := time.Duration(random.Int64N(int64(5 * time.Second)))
		restart := []string{"replace", "reload"}[random.IntN(2)]
		t.Run(fmt.Sprintf("%d %s after %s, %s", i, victims, after.Round(time.Millisecond), restart), func(t *testing.T) {
			t.Parallel()
			n := startNginx(t)
			s := newSite(t, n.experiment(restart))
			s.killSome(victims, after)
			if victims == "conductor" {
				s.gone()
			}
			said := s.failed(0, "list")
			if strings.Contains(said, "has been put back") {
				swept.Add(1)
			}
			n.same(t)
			s.clean()
			// And the lock is free, and the next run finds things as they were.
			s.output("run", "--blocks", "1", "--format", "json", "app.yaml")
			n.same(t)
			s.clean()
		})
	}
}
