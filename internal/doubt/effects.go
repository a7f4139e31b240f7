package doubt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/render"
	"hakaru/internal/unit"
)

// effects are doubts about what settings will do once they are put in.
func effects(exp *hakaru.Experiment) []hakaru.Warning {
	c, err := render.New(exp)
	if err != nil || len(exp.Strata) == 0 {
		return nil // a mistake in hakaru itself, said where something is rendered
	}
	var out []hakaru.Warning
	say := func(code, message string) {
		if w := (hakaru.Warning{Code: code, Message: message}); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	for i := range exp.Services {
		s := &exp.Services[i]
		for _, stray := range c.Strays(s) {
			message := fmt.Sprintf("%s:%d:%d: %s has no setting called %q", s.Settings, stray.Line, stray.Column, s.Kind, stray.Name)
			if stray.Near != "" {
				message += fmt.Sprintf(": did you mean %q?", stray.Near)
			} else {
				message += ", nothing in the file uses it as a variable, and it is ignored"
			}
			say(UnknownKey, message)
		}
	}
	late := map[string]time.Duration{}        // by setting, the longest that any of its levels needs
	implied := map[string]map[string]string{} // by setting, then by variant: what switches it on
	var length time.Duration
	for _, v := range exp.Variants[:min(len(exp.Variants), render.MaxRendered)] {
		r, err := c.Rendering(v, exp.Strata[0])
		if err != nil {
			continue
		}
		length = r.Length()
		for name, after := range r.Late() {
			late[name] = max(late[name], after)
		}
		for _, name := range slices.Sorted(maps.Keys(v.Idle)) {
			say(IdleSetting, v.Idle[name]+", so it does nothing, and nothing is said of it")
		}
		for name, by := range r.Implied() {
			if implied[name] == nil {
				implied[name] = map[string]string{}
			}
			implied[name][v.Name] = by
		}
		taken := r.TakenOver()
		for _, service := range slices.Sorted(maps.Keys(taken)) {
			setting, file := taken[service][0], taken[service][1]
			say(TakesOver, fmt.Sprintf("the config file of %s says %s = %s, and a trial takes that file from whoever listens on it: base: {%s: \"{hakaru.dir}/sock\"}",
				hakaru.TheService(service), setting, file, setting))
		}
		shared := r.Shared()
		for _, service := range slices.Sorted(maps.Keys(shared)) {
			for _, line := range shared[service] {
				say(SharesFiles, fmt.Sprintf("the config file of %s says %s %s, and a trial writes there as a server that runs with the same file does; name another under {hakaru.dir}",
					hakaru.TheService(service), line[0], line[1]))
			}
		}
		overwritten := r.Overwritten()
		for _, service := range slices.Sorted(maps.Keys(overwritten)) {
			say(ListensToo, fmt.Sprintf("%s: the setting %s %s", hakaru.TheService(service), overwritten[service][0], overwritten[service][1]))
		}
		background := r.Background()
		for _, service := range slices.Sorted(maps.Keys(background)) {
			setting, _, _ := strings.Cut(background[service], "=")
			say(LeavesForeground, fmt.Sprintf("%s sends %s to the background, and hakaru needs it in the foreground: base: {%s: null}",
				setting, hakaru.TheService(service), setting))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(late)) {
		say(CannotAct, fmt.Sprintf("%s needs %s to act, and a trial is over after %s (warm-up and window), so it will not be judged: -d %s would do",
			name, unit.ExactDuration(late[name]), unit.ExactDuration(length), unit.ExactDuration(longEnough(late[name]))))
	}
	for _, name := range slices.Sorted(maps.Keys(implied)) {
		with := implied[name]
		if len(with) == len(exp.Variants) {
			continue
		}
		variant := slices.Sorted(maps.Keys(with))[0]
		say(AlsoSwitched, fmt.Sprintf("%s switches %s on in variant %s, and not every variant has it: the difference measured would be that of both; write %s under base",
			with[variant], name, variant, name))
	}
	return out
}

// longEnough is a window in which a setting that needs this time can show: a sixth
// of it, and at least five seconds, are left to do so.
func longEnough(after time.Duration) time.Duration {
	return (after + max(5*time.Second, after/6)).Round(time.Second)
}
