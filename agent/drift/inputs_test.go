package drift

import (
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/note"
)

// reading is a resource type that reads a source and templates.
type reading struct{ note.Type }

func (reading) Watches(_ note.Provider, spec *note.Spec) []watch.Point {
	return resource.WatchPaths(spec.Name, "/source", "templates")
}

func readingResource(path, dir string) *resource.Resource {
	r := notes(path)[0]
	r.Type, r.Scope.Dir = resource.Of(reading{}, note.Provider(note.Plain{})), dir
	r.Type.Writes = resource.Paths

	return r
}

// TestTheMarkIsAboutThePathAlone: a changed source or template is drift, although the path of the
// resource is unchanged since the last run.
func TestTheMarkIsAboutThePathAlone(t *testing.T) {
	for name, c := range map[string]struct {
		at    []string
		delay bool
		drift bool
	}{
		"the path":                {at: []string{"/f"}},
		"the source":              {at: []string{"/source"}, drift: true},
		"a template":              {at: []string{"/beside/templates"}, drift: true},
		"the path and the source": {at: []string{"/f", "/source"}, drift: true},
		"the source, delayed":     {at: []string{"/source"}, delay: true, drift: true},
		"the path, delayed":       {at: []string{"/f"}, delay: true},
	} {
		t.Run(name, func(t *testing.T) {
			on := newMachine()
			m := New(options(on))
			r := readingResource("/f", "/beside")
			m.Follow("key", Manifest{Resources: []*resource.Resource{r}, Limits: model.DefaultFlapping})
			m.Left("key", r.Ref(), "/f", files.Entry{}.Mark())
			now := time.Now()
			if c.delay {
				m.PutOff("key", r.Ref(), time.Time{}, now.Add(time.Minute))
			}
			for _, path := range c.at {
				on.happens(path)
			}
			drifted := m.Take(now)
			if c.delay {
				if len(drifted) != 0 {
					t.Fatalf("drifted %v before its time", drifted)
				}
				drifted = m.Take(now.Add(time.Minute))
			}
			if (len(drifted) == 1) != c.drift {
				t.Errorf("drifted %v", drifted)
			}
		})
	}
}

// TestFilesOfAManifest: when an input file changes, the whole manifest may have drifted. Files of the
// bundle are not watched, and inputs do not count as resources.
func TestFilesOfAManifest(t *testing.T) {
	on := newMachine()
	m := New(options(on))
	r := readingResource("/f", "/bundle")
	m.Follow("key", Manifest{Resources: []*resource.Resource{r}, Inputs: []string{"/child.yaml", "/bundle/x"}, Bundle: "/bundle", Limits: model.DefaultFlapping})
	var armed []string
	for name := range on.wakes {
		armed = append(armed, name)
	}
	slices.Sort(armed)
	if want := []string{"/child.yaml", "/f", "/source"}; !slices.Equal(armed, want) {
		t.Errorf("watches %v, want %v", armed, want)
	}
	on.happens("/f")
	on.happens("/child.yaml")
	if drifted := m.Take(time.Now()); len(drifted) != 1 || drifted[0].Refs != nil {
		t.Errorf("drifted %v, want the whole manifest", drifted)
	}
	if watched, polled, _ := m.Watched(); watched != 1 || polled != 0 {
		t.Errorf("%d watched, %d polled", watched, polled)
	}
}
