package render

import "time"

// ActsAfter is how long each setting of the variant needs until its value can
// show, by full name; those that act at once, or do nothing at all, are left out.
func (r *Rendering) ActsAfter() map[string]time.Duration {
	out := map[string]time.Duration{}
	for i := range r.units {
		u := &r.units[i]
		for _, x := range r.settingsOf(r.service(u.unit.Service)) {
			if x.Value == nil || r.variant.Idle[x.FullName()] != "" {
				continue
			}
			if acts := r.actsAfter(u.kind, x, r.fixed.Expand(*x.Value)); acts > 0 {
				out[x.FullName()] = acts
			}
		}
	}
	return out
}
