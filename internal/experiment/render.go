package experiment

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/kind"
	"hakaru/internal/unit"
)

// Render says what one variant under one stratum means: the stack to bring up,
// the load to send, and what to ask the services for proof. Names that only the
// host knows (ports, sockets, hakaru.dir, hakaru.exe) are left in place.
func Render(exp *hakaru.Experiment, variant string, at map[string]string) (hakaru.Bundle, hakaru.LoadSpec, []hakaru.Ask, error) {
	fail := func(err error) (hakaru.Bundle, hakaru.LoadSpec, []hakaru.Ask, error) {
		return hakaru.Bundle{}, hakaru.LoadSpec{}, nil, fmt.Errorf("render variant %s: %w", variant, err)
	}
	v, found := exp.Variant(variant)
	if !found {
		return fail(fmt.Errorf("the experiment has no such variant"))
	}
	c, err := newContext(exp)
	if err != nil {
		return fail(err)
	}
	r, err := c.rendering(v, at)
	if err != nil {
		return fail(err)
	}
	bundle, err := r.bundle()
	if err != nil {
		return fail(err)
	}
	load, err := r.load()
	if err != nil {
		return fail(err)
	}
	return bundle, load, r.asks(), nil
}

// renderError is a mistake of the person that shows when a trial is rendered.
type renderError struct {
	path, code, message, fix string
	text                     string // that is wrong, as rendered
	notYet                   bool
}

func (e *renderError) Error() string { return e.message }

// context is what all renderings of an experiment share.
type context struct {
	exp    *hakaru.Experiment
	kinds  *kind.Catalogue
	used   map[string][]string
	leased map[string]bool
	known  map[string]bool // full names of settings
}

func newContext(exp *hakaru.Experiment) (*context, error) {
	kinds, err := kind.Load()
	if err != nil {
		return nil, err
	}
	return &context{exp, kinds, usage(exp), leasedNames(exp), settingNames(exp)}, nil
}

// rendering is one variant under one stratum.
type rendering struct {
	*context
	variant hakaru.Variant
	at      map[string]string

	fixed hakaru.Names    // params and levels of the load
	names hakaru.Names    // all that is replaced here
	null  map[string]bool // settings without a value
	units []renderedUnit
}

type renderedUnit struct {
	unit     hakaru.Unit
	kind     *kind.Kind
	settings []hakaru.Setting // that the kind put in, values expanded
	content  string           // of the settings copy
}

func (c *context) rendering(v hakaru.Variant, at map[string]string) (*rendering, error) {
	exp, leased := c.exp, c.leased
	r := &rendering{context: c, variant: v, at: at, fixed: hakaru.Names{}, names: hakaru.Names{}, null: map[string]bool{}}
	for _, f := range exp.Levels {
		i := slices.IndexFunc(f.Levels, func(s hakaru.Setting) bool { return s.Level == at[f.Name] })
		if i < 0 {
			return nil, fmt.Errorf("%s has no level %q", f.Name, at[f.Name])
		}
		r.fixed[f.Name], r.fixed[f.Name+".name"] = valueOr(f.Levels[i].Value, ""), f.Levels[i].Level
	}
	levels := maps.Clone(r.fixed)
	for name, value := range exp.Params {
		r.fixed[name] = levels.Expand(value)
	}
	maps.Copy(r.names, r.fixed)
	for name := range c.known {
		if !leased[name] {
			r.names[name], r.names[name+".name"], r.null[name] = "", "null", true
		}
	}
	put := func(list []hakaru.Setting) {
		for _, s := range list {
			if name := fullName(s); !leased[name] {
				r.names[name], r.names[name+".name"] = r.fixed.Expand(valueOr(s.Value, "")), s.Level
				r.null[name] = s.Value == nil
			}
		}
	}
	for _, s := range exp.Services {
		put(s.Base)
	}
	put(v.Settings)
	return r, nil
}

// expand replaces names in text; whole is false where one of them is null, so
// that the word, line or variable is to be left out.
func (r *rendering) expand(text string) (expanded string, whole bool) {
	for _, name := range mentioned(text) {
		if r.null[name] {
			return "", false
		}
	}
	return r.names.Expand(text), true
}

func (r *rendering) text(text string) string { return r.names.Expand(text) }

// lines expands a text line by line, without those that mention a null.
func (r *rendering) lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line, whole := r.expand(line); whole {
			b.WriteString(line)
		}
	}
	return b.String()
}

// present reports whether the variant has the service.
func (r *rendering) present(s *hakaru.Service) bool {
	for factor, level := range s.Only {
		i := slices.IndexFunc(r.variant.Settings, func(v hakaru.Setting) bool { return fullName(v) == factor })
		if i < 0 || r.variant.Settings[i].Level != level {
			return false
		}
	}
	return true
}

// owns reports whether a setting belongs to a service and is put in by its kind,
// not by a placeholder.
func (r *rendering) owns(s *hakaru.Service, x hakaru.Setting) bool {
	mine := x.Service == s.Name || x.Service == "" && len(r.exp.Services) == 1 && s.Name == onlyService
	return mine && len(r.used[fullName(x)]) == 0 && !reservedFactor(x.Name)
}

// effective are the settings that the kind is to put in: base, then the
// variant's, the later in the place of the earlier.
func (r *rendering) effective(s *hakaru.Service) []hakaru.Setting {
	var list []hakaru.Setting
	for _, x := range slices.Concat(s.Base, r.variant.Settings) {
		if !r.owns(s, x) {
			continue
		}
		if x.Value != nil {
			value := r.fixed.Expand(*x.Value)
			x.Value = &value
		}
		list = override(list, x)
	}
	return list
}

func (r *rendering) bundle() (hakaru.Bundle, error) {
	out := hakaru.Bundle{Trial: hakaru.Trial{Variant: r.variant.Name, At: r.at}}
	taken := map[string]bool{}
	for i := range r.exp.Services {
		s := &r.exp.Services[i]
		if !r.present(s) || s.Attach != nil {
			continue
		}
		u, err := r.unit(s, taken)
		if err != nil {
			return out, err
		}
		r.units = append(r.units, u)
		out.Units = append(out.Units, u.unit)
		for _, p := range s.Ports {
			out.Leases = append(out.Leases, hakaru.Lease{Name: p, Service: s.Name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.exp.Sockets)) {
		family := r.text(r.exp.Sockets[name])
		if family != "tcp" && family != "unix" {
			return out, &renderError{path: "sockets." + name, code: "unknown-value",
				message: fmt.Sprintf("socket %s is to be tcp or unix, and is %q in variant %s", name, family, r.variant.Name)}
		}
		out.Leases = append(out.Leases, hakaru.Lease{Name: name, Unix: family == "unix"})
	}
	return out, nil
}

func (r *rendering) unit(s *hakaru.Service, taken map[string]bool) (renderedUnit, error) {
	where := "service"
	if s.Name != onlyService || len(r.exp.Services) > 1 {
		where = "services." + s.Name
	}
	k, _ := r.kinds.Find(s.Kind)
	if k == nil {
		return renderedUnit{}, fmt.Errorf("unknown kind %q of %s", s.Kind, s.Name)
	}
	out := renderedUnit{kind: k, settings: r.effective(s)}
	u := hakaru.Unit{Service: s.Name, Kind: s.Kind, Dir: r.exp.Dir, User: r.text(s.User), CPUs: r.exp.ServiceHost.CPUs}
	if s.Dir != "" {
		if u.Dir = r.text(s.Dir); !path.IsAbs(u.Dir) {
			u.Dir = path.Join(r.exp.Dir, u.Dir)
		}
	}
	for i, word := range s.Run {
		word, whole := r.expand(word)
		switch {
		case i == 0 && (!whole || word == ""):
			return out, &renderError{path: where + ".run", code: "command-line", message: fmt.Sprintf("run names no program in variant %s", r.variant.Name)}
		case i == 0 && word == "hakaru":
			word = "{hakaru.exe}"
		}
		if whole {
			u.Argv = append(u.Argv, word)
		}
	}
	for _, e := range s.Env {
		v := hakaru.EnvVar{Name: e.Name}
		if e.Value != nil {
			if value, whole := r.expand(*e.Value); whole {
				v.Value = &value
			}
		}
		u.Env = append(u.Env, v)
	}
	if err := r.putIn(s, k, &u, &out, taken); err != nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		taken[name] = true
		u.Files = append(u.Files, hakaru.File{Path: name, Content: r.lines(s.Files[name])})
		redirect(u.Argv, name, name)
	}
	u.Ready = r.ready(s, k, u.Argv, out.content)
	u.Stop = s.Stop
	if u.Stop.Signal == "" {
		u.Stop.Signal = k.Stop.Signal
	}
	if u.Stop.Grace == 0 && k.Stop.Grace != "" {
		grace, err := unit.ParseDuration(k.Stop.Grace)
		if err != nil {
			return out, fmt.Errorf("kind %s: %w", k.Name, err)
		}
		u.Stop.Grace = grace
	}
	out.unit = u
	return out, nil
}

// putIn writes the settings copy and lets the kind put its settings in: into the
// copy where there is one, else on the command line.
func (r *rendering) putIn(s *hakaru.Service, k *kind.Kind, u *hakaru.Unit, out *renderedUnit, taken map[string]bool) error {
	if s.Settings != "" {
		out.content = r.lines(sourceOf(r.exp, s.Settings))
	}
	switch {
	case len(out.settings) == 0 || s.Kind == "command":
	case s.Settings != "" && k.CanEditFile():
		edited, err := k.EditFile(out.content, out.settings)
		if err != nil {
			return err
		}
		out.content = edited
	case k.CanEditWords():
		argv, err := k.EditWords(u.Argv, out.settings)
		if err != nil {
			return err
		}
		u.Argv = argv
	default:
		return &renderError{notYet: !k.Built, path: "service.kind", code: "not-yet",
			message: fmt.Sprintf("kind %s cannot put the setting %s in yet", k.Name, out.settings[0].Name)}
	}
	if s.Settings != "" {
		name := path.Base(s.Settings)
		if taken[name] {
			name = s.Name + "-" + name
		}
		taken[name] = true
		u.Files = append(u.Files, hakaru.File{Path: name, Content: out.content})
		redirect(u.Argv, s.Settings, name)
	}
	return nil
}

// redirect makes the words that name a file name its copy.
func redirect(argv []string, file, name string) {
	for i, word := range argv {
		if at := namesFile(word, file); at >= 0 && i > 0 {
			argv[i] = word[:at] + "{hakaru.dir}/" + name
		}
	}
}

func (r *rendering) ready(s *hakaru.Service, k *kind.Kind, argv []string, content string) hakaru.Ready {
	ready := hakaru.Ready{Get: r.text(s.Ready.Get), Status: s.Ready.Status, Body: r.text(s.Ready.Body),
		Connect: r.text(s.Ready.Connect), Log: r.text(s.Ready.Log), Timeout: s.Ready.Timeout}
	if ready.Get != "" || ready.Connect != "" || ready.Log != "" || k.Ready.Get == "" {
		return ready
	}
	address := r.address(k, argv, content)
	if r.unixAddress(address) {
		ready.Connect = address
		return ready
	}
	ready.Get, ready.Status = hakaru.Names{"addr": address}.Expand(k.Ready.Get), k.Ready.Status
	return ready
}

// address is where the service listens. A socket's URL stands for its address.
func (r *rendering) address(k *kind.Kind, argv []string, content string) string {
	address := k.Address(argv, content)
	if plain, found := strings.CutSuffix(address, ".url}"); found && !r.unixAddress(address) {
		return plain + "}"
	}
	return strings.TrimPrefix(address, "tcp://")
}

// unixAddress tells a unix socket from host:port; a leased socket is one when its
// family says so.
func (r *rendering) unixAddress(address string) bool {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "/") {
		return true
	}
	for _, name := range mentioned(address) {
		name = strings.TrimSuffix(name, ".url")
		if family, ok := r.exp.Sockets[name]; ok && r.text(family) == "unix" {
			return true
		}
	}
	return false
}

const (
	defaultConnections = 64
	defaultWarmUp      = time.Second
	defaultDuration    = 10 * time.Second
	defaultTimeout     = 10 * time.Second
	maxConnections     = 100_000
)

// load renders what is sent. A load program gives an empty LoadSpec.
func (r *rendering) load() (hakaru.LoadSpec, error) {
	spec, wrong := renderHTTP(r.exp.Load.HTTP, r.text)
	if len(wrong) > 0 {
		return spec, wrong[0]
	}
	return spec, nil
}

// renderHTTP renders load over HTTP, and says all that is wrong with it.
func renderHTTP(h *hakaru.HTTPLoad, expand func(string) string) (hakaru.LoadSpec, []*renderError) {
	if h == nil {
		return hakaru.LoadSpec{}, nil
	}
	var failed []*renderError
	wrong := func(key, text, why, fix string) {
		failed = append(failed, &renderError{path: "load.http." + key, text: text, code: "bad-value", message: fmt.Sprintf("load.http.%s: %s", key, why), fix: fix})
	}
	period := func(key, text string, otherwise, least time.Duration) time.Duration {
		text = expand(text)
		if text == "" {
			return otherwise
		}
		d, err := unit.ParseDuration(text)
		if err != nil {
			wrong(key, text, err.Error(), durationHint(text))
		} else if d < least {
			wrong(key, text, fmt.Sprintf("%s is shorter than %s", text, unit.ExactDuration(least)), "")
		}
		return d
	}
	req := &hakaru.HTTPRequest{URL: expand(h.URL), Method: "GET", Body: expand(h.Body), Expect: expand(h.Expect), Connections: defaultConnections, KeepAlive: true}
	spec := hakaru.LoadSpec{HTTP: req}
	spec.WarmUp = period("warm_up", h.WarmUp, defaultWarmUp, 0)
	spec.Window = period("duration", h.Duration, defaultDuration, hakaru.BucketWidth)
	req.Timeout = period("timeout", h.Timeout, defaultTimeout, time.Millisecond)
	if text := expand(h.Connections); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 || n > maxConnections {
			wrong("connections", text, fmt.Sprintf("%q is not a whole number from 1 to %d", text, maxConnections), "")
		}
		req.Connections = int(n)
	}
	if text := expand(h.Status); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 100 || n > 599 {
			wrong("status", text, fmt.Sprintf("%q is not a status from 100 to 599", text), "")
		}
		req.Status = int(n)
	}
	switch text := expand(h.KeepAlive); text {
	case "", "true", "yes", "on":
	case "false", "no", "off":
		req.KeepAlive = false
	default:
		wrong("keep_alive", text, fmt.Sprintf("%q is neither true nor false", text), "")
	}
	if method := expand(h.Method); method != "" {
		if req.Method = strings.ToUpper(method); !token(method) {
			wrong("method", method, fmt.Sprintf("%q is not a method of HTTP", method), "")
		}
	}
	if !strings.HasPrefix(req.URL, "http://") && !strings.HasPrefix(req.URL, "https://") || strings.ContainsAny(req.URL, " \t\r\n") {
		wrong("url", req.URL, fmt.Sprintf("%q is not a URL that begins with http://", req.URL), "")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		value := expand(h.Headers[name])
		if strings.ContainsAny(value, "\r\n\x00") {
			wrong("headers."+name, value, "a header is one line", "")
		}
		if req.Headers == nil {
			req.Headers = map[string]string{}
		}
		req.Headers[name] = value
	}
	return spec, failed
}
