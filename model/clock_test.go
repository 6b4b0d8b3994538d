package model_test

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestClockOffset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offset, within time.Duration
		apparent       bool
		text           string
	}{
		{0, 0, false, "0s ahead of the NATS server's"},
		{-4999 * time.Millisecond, time.Millisecond, false, "4.999s behind the NATS server's"},
		{-5 * time.Second, time.Millisecond, true, "5s behind the NATS server's"},
		{time.Hour + 1400*time.Millisecond, time.Second, true, "1h0m1s ahead of the NATS server's"},
		{6 * time.Second, 7 * time.Second, false, "6s ahead of the NATS server's"},
	} {
		got := model.ClockOffset{Offset: model.Offset(c.offset), Within: model.Duration(c.within)}
		if got.Apparent() != c.apparent || got.String() != c.text {
			t.Errorf("%s within %s: %v, %q", c.offset, c.within, got.Apparent(), got)
		}
		var back model.Offset
		text, err := got.Offset.MarshalText()
		if err == nil {
			err = back.UnmarshalText(text)
		}
		if err != nil || back != got.Offset {
			t.Errorf("%s is read back as %s, %v", text, back, err)
		}
	}
	if err := new(model.Offset).UnmarshalText([]byte("5")); err == nil {
		t.Error("a number without a unit is read")
	}
}
