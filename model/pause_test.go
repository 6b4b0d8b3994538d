package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestDecodePause(t *testing.T) {
	t.Parallel()
	const head = `{"protocol":"io.muster.v1.pause"`
	for value, ok := range map[string]bool{
		head + `}`: true,
		head + `,"until":"2026-01-31T11:29:48Z","by":"ann","reason":"the disk is replaced","at":"2026-01-31T11:29:48Z"}`: true,
		head + `,"by":"` + strings.Repeat("x", 129) + `"}`:                                                               false,
		head + `,"reason":"a\nb"}`:       false,
		head + `,"reason":"a\u001b[2J"}`: false,
		head + `,"until":"tomorrow"}`:    false,
		head + `,"more":1}`:              false,
		head + `} {}`:                    false,
		`{}`:                             false,
		`null`:                           false,
		``:                               false,
		"muster: {}":                     false,
		head + strings.Repeat(" ", model.MaxControl) + `}`: false,
	} {
		if _, err := model.DecodePause([]byte(value)); (err == nil) != ok || err != nil && !errors.Is(err, model.ErrInvalidControl) {
			t.Errorf("%.80s: %v", value, err)
		}
	}
}

func TestDecodeLabels(t *testing.T) {
	t.Parallel()
	const head = `{"protocol":"io.muster.v1.labels","labels":`
	many := "{"
	for i := range model.MaxLabels + 1 {
		many += fmt.Sprintf(`"l%d":"",`, i)
	}
	for value, ok := range map[string]bool{
		head + `{}}`:                                     true,
		head + `{"rack":"a3","row":""}}`:                 true,
		head + `{"":"a3"}}`:                              false,
		head + `{"rack":"a\u0007"}}`:                     false,
		head + `{"rack":3}}`:                             false,
		head + many + `"last":""}}`:                      false,
		`{"labels":{"rack":"a3"}}`:                       false,
		head + `{"` + strings.Repeat("x", 64) + `":""}}`: false,
	} {
		if _, err := model.DecodeLabels([]byte(value)); (err == nil) != ok || err != nil && !errors.Is(err, model.ErrInvalidControl) {
			t.Errorf("%.80s: %v", value, err)
		}
	}
}

func TestPausedText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 11, 29, 48, 0, time.UTC)
	for want, p := range map[string]model.Paused{
		"paused":              {},
		"paused by ann: disk": {By: "ann", Reason: "disk"},
		"paused until " + at.Local().Format(model.TimeFormat) + " by ann": {By: "ann", Until: at},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzControlDocuments(f *testing.F) {
	f.Add([]byte(`{"protocol":"io.muster.v1.pause","until":"2026-01-31T11:29:48Z","by":"ann"}`))
	f.Add([]byte(`{"protocol":"io.muster.v1.labels","labels":{"rack":"a3"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := model.DecodePause(data); err == nil {
			if again, err := model.EncodeJSON(p); err != nil {
				t.Errorf("%+v cannot be encoded: %v", p, err)
			} else if _, err := model.DecodePause(again); err != nil {
				t.Errorf("%s is not read again: %v", again, err)
			}
			if text := (model.Paused{By: p.By, Reason: p.Reason, Until: p.Until}).String(); strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("%q", text)
			}
		}
		if l, err := model.DecodeLabels(data); err == nil && len(l.Labels) > model.MaxLabels {
			t.Errorf("%d labels", len(l.Labels))
		}
	})
}
