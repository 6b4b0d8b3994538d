package kvstore

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A server that sends very slowly does not block the reader forever.
func TestObjectsThatDripAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{"single bytes": []byte("x"), "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				drip := func(yield func(Message, error) bool) {
					for time.Since(begun) < time.Hour && yield(Message{Data: data}, nil) {
						<-time.After(time.Second)
					}
				}
				r := newObjectReader(&jetstream.ObjectInfo{Size: 1 << 29, Chunks: 1 << 20}, drip)
				defer r.Close()
				if _, err := io.Copy(io.Discard, r); !errors.Is(err, ErrSlow) || time.Since(begun) > 2*objectGrace {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
			})
		})
	}
}

// The time between two calls of Read does not count against the server.
func TestSlowReadersAreNotGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := func(yield func(Message, error) bool) {
			for yield(Message{Data: []byte("x")}, nil) {
			}
		}
		r := newObjectReader(&jetstream.ObjectInfo{Size: 100, Chunks: 100}, parts)
		defer r.Close()
		for range 100 {
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
	})
}
