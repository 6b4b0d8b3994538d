package ask_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// lagging is a bucket with one document and a stale replica.
type lagging struct {
	ask.ControlBucket
	current model.Entry
}

func (l *lagging) Current(context.Context, string) (model.Entry, error) { return l.current, nil }

func (l *lagging) Replace(_ context.Context, key string, revision uint64, value []byte) (uint64, error) {
	if revision != l.current.Revision {
		return 0, model.ErrControlChanged
	}
	l.current = model.Entry{Key: key, Revision: revision + 1, Value: value}

	return l.current.Revision, nil
}

// texts is a document of labels without a protocol.
type texts map[string]string

func (texts) Check() error { return nil }

// TestUpdatesDoNotBelieveAServerThatLags: a label that the server does not have yet is removed, and another
// is written after it.
func TestUpdatesDoNotBelieveAServerThatLags(t *testing.T) {
	for name, c := range map[string]struct {
		change func(texts) (texts, bool)
		want   string
	}{
		"taken back": {func(now texts) (texts, bool) { return texts{}, now["rack"] == "" }, `{}`},
		"added": {func(now texts) (texts, bool) {
			out := maps.Clone(now)
			out["room"] = "b"
			return out, false
		}, `{"rack":"a","room":"b"}`},
		"nothing to do": {func(now texts) (texts, bool) { return now, now["floor"] == "" }, `{"rack":"a"}`},
	} {
		b := &lagging{current: model.Entry{Revision: 2, Value: []byte(`{"rack":"a"}`)}}
		u := ask.Updater[texts]{Bucket: b, Name: "labels", Change: c.change, Decode: func(value []byte) (texts, error) {
			if string(value) == `{}` {
				return texts{}, nil
			}
			return texts{"rack": "a"}, nil
		}}
		out, err := u.Update(t.Context(), fleet.Target{Node: "web01"})
		if err != nil || string(b.current.Value) != c.want || out.Revision != b.current.Revision {
			t.Errorf("%s: %+v, %v: %s", name, out, err, b.current.Value)
		}
	}
	broken := errors.New("broken")
	u := ask.Updater[texts]{Bucket: &lagging{}, Decode: func([]byte) (texts, error) { return nil, broken }}
	if _, err := u.Update(t.Context(), fleet.Target{Node: "web01"}); !errors.Is(err, broken) {
		t.Error(err)
	}
}
