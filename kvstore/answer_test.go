package kvstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// answer returns an answer with headers, "name: value" each.
func newAnswer(headers ...string) *nats.Msg {
	m := nats.NewMsg("_INBOX.a")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		m.Header.Add(name, value)
	}

	return m
}

var serverHeaders = []string{"Nats-Stream: S", "Nats-Subject: a.b", "Nats-Sequence: 7", "Nats-Time-Stamp: 2026-01-02T03:04:05.6Z"}

func TestDecode(t *testing.T) {
	t.Parallel()
	with := func(more ...string) *nats.Msg { return newAnswer(append(more, serverHeaders...)...) }
	for name, tt := range map[string]struct {
		reply  *nats.Msg
		asked  Query
		want   error
		forged bool
	}{
		"a message":                {reply: with("Mine: 1", "KV-Operation: DEL")},
		"of a wildcard":            {reply: with(), asked: Query{"S", "a.>", 7}},
		"batch headers of its own": {reply: with("Nats-Num-Pending: 0", "Nats-Last-Sequence: 3")},
		"stream of its own":        {reply: with("Nats-Stream: EVIL"), forged: true},
		"subject of its own":       {reply: with("Nats-Subject: x"), forged: true},
		"sequence of its own":      {reply: with("Nats-Sequence: 99"), forged: true},
		"time of its own":          {reply: with("Nats-Time-Stamp: then"), forged: true},
		"status of its own":        {reply: with("Status: 404"), forged: true},
		"another stream":           {reply: newAnswer("Nats-Stream: S", "Nats-Stream: T", "Nats-Subject: a.b", "Nats-Sequence: 7", serverHeaders[3]), want: ErrWrongAnswer},
		"another subject":          {reply: with(), asked: Query{"S", "a.c", 0}, want: ErrWrongAnswer},
		"longer subject":           {reply: with(), asked: Query{"S", "a", 0}, want: ErrWrongAnswer},
		"shorter subject":          {reply: with(), asked: Query{"S", "a.b.>", 0}, want: ErrWrongAnswer},
		"wildcard as a subject":    {reply: newAnswer("Nats-Stream: S", "Nats-Subject: a.", "Nats-Sequence: 7", serverHeaders[3]), asked: Query{"S", "a.*", 0}, want: ErrWrongAnswer},
		"before the first":         {reply: with(), asked: Query{"S", "a.b", 8}, want: ErrWrongAnswer},
		"no sequence":              {reply: newAnswer("Nats-Stream: S", "Nats-Subject: a.b", serverHeaders[3]), want: ErrWrongAnswer},
		"no number":                {reply: newAnswer("Nats-Stream: S", "Nats-Subject: a.b", "Nats-Sequence: -1", serverHeaders[3]), want: ErrWrongAnswer},
		"no time":                  {reply: newAnswer(serverHeaders[:3]...), want: ErrWrongAnswer},
		"nothing":                  {reply: newAnswer(), want: ErrWrongAnswer},
		"no headers at all":        {reply: &nats.Msg{}, want: ErrWrongAnswer},
		"not found":                {reply: newAnswer("Status: 404"), want: model.ErrNotFound},
		"end of the batch":         {reply: newAnswer("Nats-Num-Pending: 3", "Status: 204"), want: errEndOfBatch},
		"nobody":                   {reply: newAnswer("Status: 503"), want: nats.ErrNoResponders},
	} {
		a := tt.asked
		if a.Stream == "" {
			a = Query{"S", "a.b", 0}
		}
		m, err := decodeAnswer(a, tt.reply)
		if !errors.Is(err, tt.want) || m.Forged != tt.forged {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if err == nil && (m.Sequence != 7 || m.Subject != "a.b" || m.Time.Year() != 2026) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if _, err := decodeAnswer(Query{}, newAnswer("Description: Bad Request", "Status: 408")); err == nil || !strings.Contains(err.Error(), "408 Bad Request") {
		t.Error(err)
	}
}

// FuzzDecode checks that each decoded message matches the request, for any headers.
func FuzzDecode(f *testing.F) {
	f.Add("Nats-Stream: S\r\nNats-Subject: a.b\r\nNats-Sequence: 7\r\nNats-Time-Stamp: 2026-01-02T03:04:05.6Z\r\n", "a.>")
	f.Add("Status: 404\r\nNats-Stream: T\r\n", "a.b")
	f.Add("Status: 204\r\nNats-Num-Pending: 1\r\n", "*.b")
	f.Fuzz(func(t *testing.T, headers, subject string) {
		var lines []string
		for line := range strings.SplitSeq(headers, "\r\n") {
			lines = append(lines, line)
		}
		m, err := decodeAnswer(Query{"S", subject, 5}, newAnswer(lines...))
		if err != nil {
			if m.Sequence != 0 || m.Subject != "" {
				t.Errorf("%+v with %v", m, err)
			}
			return
		}
		if m.Sequence < 5 || !SubjectMatches(m.Subject, subject) || m.Time.IsZero() && fmt.Sprint(m.Header[nats.JSTimeStamp]) == "[]" {
			t.Errorf("%+v", m)
		}
	})
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		subject, pattern string
		want             bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.*", true}, {"a.b", ">", true}, {"a.b.c", "a.>", true}, {"a.b", "*.b", true},
		{"a", "a.>", false}, {"a.b.c", "a.*", false}, {"a", "a.b", false}, {"a.b", "a", false}, {"", "*", false}, {"ab", "a", false},
		{"", ">", true}, {"a.", "a.>", true}, {"a.", "a.*", false}, {"a.", "a", false}, {"a..c", "a.*.c", false}, {"a.b.c", "*.*.*", true}, {"a.b.c", "*.*", false}, {"", "", false}, {"a", "", false},
	} {
		if got := SubjectMatches(tt.subject, tt.pattern); got != tt.want {
			t.Errorf("%s matches %s = %v", tt.subject, tt.pattern, got)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	const info = `{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"S"},"state":{"last_seq":7,"subjects":{"a.b":1,"a.c":2}}}`
	for name, tt := range map[string]struct {
		stream, filter, data string
		want                 error
	}{
		"an info":        {"S", "a.>", info, nil},
		"another stream": {"T", "a.>", info, ErrWrongAnswer},
		"another filter": {"S", "b.>", info, ErrWrongAnswer},
		"another answer": {"S", "a.>", `{"type":"io.nats.jetstream.api.v1.stream_list_response"}`, ErrWrongAnswer},
		"no answer":      {"S", "a.>", "x", ErrWrongAnswer},
		"nothing":        {"S", "a.>", "{}", ErrWrongAnswer},
		"no such stream": {"S", "a.>", `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`, model.ErrNotFound},
	} {
		if _, err := decodeSubjects(tt.stream, tt.filter, []byte(tt.data)); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decodeSubjects("S", ">", []byte(`{"error":{"code":503,"err_code":10008,"description":"unavailable"}}`)); err == nil || errors.Is(err, ErrWrongAnswer) {
		t.Error(err)
	}
}

// FuzzSubjects checks that a decoded info is of the stream and lists only matching subjects.
func FuzzSubjects(f *testing.F) {
	f.Add([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"S"},"state":{"subjects":{"a.b":1}}}`), "a.>")
	f.Add([]byte(`{"error":{}}`), ">")
	f.Fuzz(func(t *testing.T, data []byte, filter string) {
		info, err := decodeSubjects("S", filter, data)
		if err != nil {
			return
		}
		for subject := range info.State.Subjects {
			if info.Config.Name != "S" || !SubjectMatches(subject, filter) {
				t.Errorf("%s of %s", subject, info.Config.Name)
			}
		}
	})
}
