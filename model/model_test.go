package model_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

func TestSecretIsNeverShown(t *testing.T) {
	const value = "hunter2hunter2"
	s := model.NewSecret(value)
	holder := struct {
		Password model.Secret
		List     []model.Secret
		Pointer  *model.Secret
	}{s, []model.Secret{s}, &s}
	asJSON, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	asKey, err := json.Marshal(map[string]any{"data": map[string]any{"p": s}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("text", "secret", s, "holder", holder)
	shown := map[string]string{
		"json": string(asJSON), "yaml": string(asYAML), "map": string(asKey), "log": log.String(),
		"%v": fmt.Sprintf("%v", s), "%s": fmt.Sprintf("%s", s), "%q": fmt.Sprintf("%q", s), "%x": fmt.Sprintf("%x", s),
		"%+v": fmt.Sprintf("%+v", holder), "%#v": fmt.Sprintf("%#v", holder), "error": fmt.Errorf("it was %v", s).Error(),
	}
	for how, text := range shown {
		if strings.Contains(text, "hunter") || strings.Contains(text, fmt.Sprintf("%x", "hunter")) {
			t.Errorf("%s shows the secret: %s", how, text)
		}
		if !strings.Contains(text, model.Redacted) {
			t.Errorf("%s says nothing in its place: %s", how, text)
		}
	}
	if s.Reveal() != value {
		t.Fatal("the value is lost")
	}
}

func TestRef(t *testing.T) {
	ref, err := model.ParseRef("exec#echo #1")
	if err != nil || ref != (model.Ref{Type: "exec", Name: "echo #1"}) || ref.String() != "exec#echo #1" {
		t.Fatal(ref, err)
	}
	for _, bad := range []string{"", "file", "file#", "#name"} {
		if _, err := model.ParseRef(bad); !errors.Is(err, model.ErrInvalidRef) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDuration(t *testing.T) {
	var d model.Duration
	if err := d.UnmarshalText([]byte("1m30s")); err != nil || d.String() != "1m30s" {
		t.Fatal(d, err)
	}
	for _, bad := range []string{"30", "-1s", "soon", ""} {
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestProblemsAreInTheOrderOfTheDocument(t *testing.T) {
	var p model.Problems
	p.Add(model.Position{File: "a.yaml", Line: 9, Column: 2}, "", "second")
	p.Add(model.Position{File: "a.yaml", Line: 2, Column: 7}, "do this", "first")
	p = append(p, model.Problem{Message: "no place", Cause: model.ErrUnknownType})
	want := "no place\na.yaml:2:7: first (do this)\na.yaml:9:2: second"
	if p.Error() != want {
		t.Fatal(p.Error())
	}
	if !errors.Is(p, model.ErrUnknownType) || (model.Problems)(nil).Err() != nil {
		t.Fatal("errors.Is does not look into them")
	}
	if got := model.AsProblems(fmt.Errorf("wrapped: %w", p)); len(got) != 3 {
		t.Fatal(got)
	}
}

func TestOutcomeAndCounts(t *testing.T) {
	cases := []struct {
		tx   model.Transaction
		want model.Outcome
		n    model.Counts
	}{
		{model.Transaction{}, model.OutcomeStable, model.Counts{Total: 1, Stable: 1}},
		{model.Transaction{Changed: true}, model.OutcomeChanged, model.Counts{Total: 1, Changed: 1}},
		{model.Transaction{Changed: true, Refreshed: true}, model.OutcomeRefreshed, model.Counts{Total: 1, Changed: 1, Refreshed: 1}},
		{model.Transaction{Changed: true, Noop: true}, model.OutcomeNoop, model.Counts{Total: 1, Changed: 1, Noop: 1}},
		{model.Transaction{Changed: true, Failed: true}, model.OutcomeFailed, model.Counts{Total: 1, Failed: 1}},
		{model.Transaction{Skipped: true}, model.OutcomeSkipped, model.Counts{Total: 1, Skipped: 1}},
		{model.Transaction{Skipped: true, UnmetRequirements: []model.Ref{{Type: "a", Name: "b"}}}, model.OutcomeUnmet, model.Counts{Total: 1, Skipped: 1, Unmet: 1}},
		{model.Transaction{NotRun: true}, model.OutcomeNotRun, model.Counts{Total: 1, NotRun: 1}},
	}
	for _, c := range cases {
		var n model.Counts
		n.Add(&c.tx)
		if got := c.tx.Outcome(); got != c.want || n != c.n {
			t.Errorf("%+v: %s %+v", c.want, got, n)
		}
	}
	runs := map[model.Outcome]model.Run{
		model.OutcomeStable:  {},
		model.OutcomeChanged: {Counts: model.Counts{Changed: 1}},
		model.OutcomeNoop:    {Counts: model.Counts{Changed: 1, Noop: 1}},
		model.OutcomeFailed:  {Counts: model.Counts{Unmet: 1}},
		model.OutcomeNotRun:  {Counts: model.Counts{NotRun: 1}},
		model.OutcomeRefused: {Refused: true},
	}
	for want, run := range runs {
		if got := run.Outcome(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestProblemsAreBounded adds more problems than the limit.
func TestProblemsAreBounded(t *testing.T) {
	var a, b, all model.Problems
	for i := range 500 {
		a.Add(model.Position{File: "a", Line: 1000 - i}, "", "problem %d", i)
		b.Property("x", "", "of b %d", i)
	}
	if len(a) != model.MaxProblems+1 || a.Count() != 500 || !a.Full() || b.Count() != 500 {
		t.Fatal(len(a), a.Count(), b.Count())
	}
	a.AddMade(func() model.Problem { t.Error("it is made"); return model.Problem{} })
	all.Append(a...)
	all.Append(b...)
	if len(all) != model.MaxProblems+1 || all.Count() != 1001 {
		t.Error(len(all), all.Count())
	}
	joined := model.Joined(append(append(model.Problems{}, a...), model.Problem{Pos: model.Position{File: "a", Line: 1}, Message: "first"}))
	if lines := strings.Split(joined.Error(), "\n"); len(lines) != 201 || lines[0] != "a:1: first" || lines[200] != "and 302 more" {
		t.Errorf("%d lines, %q … %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if one := model.Joined(a[:3]); len(one) != 3 || one.Count() != 3 || one.Full() {
		t.Error(one)
	}
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 850 * time.Microsecond: "850µs", 4123 * time.Microsecond: "4.1ms", 61234 * time.Microsecond: "61ms", 12 * time.Second: "12s",
	} {
		if got := model.ShortDuration(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}
