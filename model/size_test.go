package model_test

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]model.Size{
		"1": 1, "12B": 12, "4096": 4096, "64 MiB": 64 << 20, "1GB": 1e9, "10GiB": 10 << 30, "10 GiB": 10 << 30, "500MB": 500e6, "1kB": 1000, "1KB": 1000, "2KiB": 2048, "3TB": 3e12, "1TiB": 1 << 40, "7B": 7, "7MiB": 7 << 20, "4GB": 4e9,
	} {
		var got model.Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s is %d, want %d: %v", text, got, want, err)
		}
		var again model.Size
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != want {
			t.Errorf("%s is written %s: %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "0", "1.5GiB", "1.5MiB", "9999999999GiB", "0x10", "GiB", "10000000000TiB", "10gib", "1 0"} {
		if err := new(model.Size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if text := model.Size(0).String(); text != "0" {
		t.Errorf("nothing is %s", text)
	}
}

// FuzzSize encodes and decodes sizes.
func FuzzSize(f *testing.F) {
	for _, text := range []string{"10GiB", "500MB", "1", "-1", "9223372036854775807", "8388608TiB", "1 kB", "KiB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var size, again model.Size
		if size.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := again.UnmarshalText([]byte(size.String())); err != nil || size <= 0 || again != size {
			t.Errorf("%q is %d, written %s and read %d: %v", text, size, size, again, err)
		}
	})
}
