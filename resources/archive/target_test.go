package archive_test

import (
	"strconv"
	"testing"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
	"github.com/musterfleet/muster/testing/webtest"
)

// again is the message of noop if another archive was unpacked last.
const again = extracted + " again, because the checksum differs from the one last unpacked"

// versions manages the versions of an application on one machine.
type versions struct {
	s   stand
	dir string
	env *resource.Env
}

func newVersions(t *testing.T) *versions {
	t.Helper()
	v := &versions{s: newStand(t), dir: t.TempDir()}
	v.s.server.Put("/app-1.tar.gz", webtest.Text(v.s.old))
	v.s.server.Put("/app-2.tar.gz", webtest.Text(v.s.new))

	return v
}

// one declares a version.
func (v *versions) one(t *testing.T, version int, more typetest.Properties) *one {
	t.Helper()
	p := typetest.Properties{"url": v.s.server.URL + "/app-" + strconv.Itoa(version) + ".tar.gz", "checksum": sum([]string{v.s.old, v.s.new}[version-1]), "extract_parent": "DIR/opt"}
	for key, value := range more {
		p[key] = value
	}
	o := newOne(t, v.s.of(t, p)(v.dir))
	if v.env != nil {
		o.env = *v.env
	}
	v.env = &o.env

	return o
}

// becomes applies a version, which must be due with a message, and stable afterwards.
func (v *versions) becomes(t *testing.T, version int, more typetest.Properties, message string) {
	t.Helper()
	o := v.one(t, version, more)
	_, plan := o.due()
	if plan.Message() != message {
		t.Errorf("version %d: noop says %q, not %q", version, plan.Message(), message)
	}
	_, err := o.apply(plan)
	check(t, err)
	holds("opt/app/bin/tool", strconv.Itoa(version)+"\n")(t, v.dir)
	if _, plan := o.due(); !plan.Empty() {
		t.Errorf("version %d is still due: %s", version, plan.Message())
	}
}

// TestVersions goes from version 1 to 2 and back.
func TestVersions(t *testing.T) {
	name := func(version int) string { return "DIR/app-" + strconv.Itoa(version) + ".tar.gz" }
	for title, c := range map[string]struct {
		more      typetest.Properties
		versioned bool
		// messages of the versions 1, 2, 1 and 2.
		messages [4]string
	}{
		"cleanup":            {typetest.Properties{"creates": markerOfApp, "cleanup": true}, false, [4]string{downloaded + ". " + extracted + ". " + cleanedUp, downloaded + ". " + again + ". " + cleanedUp, downloaded + ". " + again + ". " + cleanedUp, downloaded + ". " + again + ". " + cleanedUp}},
		"cleanup, versioned": {typetest.Properties{"creates": markerOfApp, "cleanup": true}, true, [4]string{downloaded + ". " + extracted + ". " + cleanedUp, downloaded + ". " + again + ". " + cleanedUp, downloaded + ". " + again + ". " + cleanedUp, downloaded + ". " + again + ". " + cleanedUp}},
		"creates":            {typetest.Properties{"creates": markerOfApp}, false, [4]string{downloaded + ". " + extracted, downloaded + ". " + again, downloaded + ". " + again, downloaded + ". " + again}},
		"creates, versioned": {typetest.Properties{"creates": markerOfApp}, true, [4]string{downloaded + ". " + extracted, downloaded + ". " + again, again, again}},
		"versioned":          {typetest.Properties{}, true, [4]string{downloaded + ". " + extracted, downloaded + ". " + again, again, again}},
	} {
		t.Run(title, func(t *testing.T) {
			v := newVersions(t)
			for i, version := range []int{1, 2, 1, 2} {
				if c.versioned {
					c.more["name"] = name(version)
				}
				v.becomes(t, version, c.more, c.messages[i])
			}
		})
	}
}

// TestParts has two archives of one manifest that are unpacked to the same place, one of
// them later than the other. They do not replace each other at every run.
func TestParts(t *testing.T) {
	for _, order := range [][2]int{{1, 2}, {2, 1}} {
		v := newVersions(t)
		declare := func(run string, version int) *one {
			o := v.one(t, version, typetest.Properties{"name": "DIR/part-" + strconv.Itoa(version) + ".tar.gz"})
			o.env.RunID = run
			return o
		}
		changes := 0
		apply := func(run string, version int) {
			o := declare(run, version)
			if _, plan := o.due(); !plan.Empty() {
				changes++
				_, err := o.apply(plan)
				check(t, err)
			}
		}
		apply("first", order[0])
		for run := range 4 {
			changes = 0
			apply(strconv.Itoa(run), 1)
			apply(strconv.Itoa(run), 2)
		}
		if changes != 0 {
			t.Errorf("the last run made %d changes", changes)
		}
	}
}

// TestUnpackedByOthers checks that archives unpacked by other programs, or without a checksum, stay.
// A run records the declared checksum of such an archive, so that the next version is unpacked.
func TestUnpackedByOthers(t *testing.T) {
	more := typetest.Properties{"creates": markerOfApp, "cleanup": true}
	for _, adopted := range []int{1, 2} {
		v := newVersions(t)
		withFile("opt/app/bin/tool", "0\n")(t, v.dir)
		o := v.one(t, adopted, more)
		state, plan := o.due()
		if !plan.Empty() {
			t.Errorf("noop says %q", plan.Message())
		}
		check(t, o.typ.Adopt(t.Context(), o.env, o.spec, state))
		if _, plan := o.due(); !plan.Empty() {
			t.Errorf("after the adoption noop says %q", plan.Message())
		}
		v.becomes(t, 3-adopted, more, downloaded+". "+again+". "+cleanedUp)
		v.becomes(t, adopted, more, downloaded+". "+again+". "+cleanedUp)
	}
	v := newVersions(t)
	v.becomes(t, 1, more, downloaded+". "+extracted+". "+cleanedUp)
	more["checksum"] = nil
	if _, plan := v.one(t, 2, more).due(); !plan.Empty() {
		t.Errorf("without a checksum noop says %q", plan.Message())
	}
}

// TestAdoptedParts adopts two archives that other programs unpacked to one target.
func TestAdoptedParts(t *testing.T) {
	v := newVersions(t)
	withFile("opt/app/bin/tool", "0\n")(t, v.dir)
	for _, run := range []string{"first", "second"} {
		for version := range 2 {
			o := v.one(t, version+1, typetest.Properties{"name": "DIR/part-" + strconv.Itoa(version) + ".tar.gz", "creates": markerOfApp, "cleanup": true})
			o.env.RunID = run
			state, plan := o.due()
			if !plan.Empty() {
				t.Errorf("in the %s run, part %d is due: %s", run, version, plan.Message())
			}
			check(t, o.typ.Adopt(t.Context(), o.env, o.spec, state))
		}
	}
}
