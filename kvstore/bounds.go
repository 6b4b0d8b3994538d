package kvstore

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/nats-io/jsm.go/api"
)

const (
	// subjectsAPage and streamsAPage are how many of them the server sends at once.
	subjectsAPage = 100_000
	streamsAPage  = 256
	// subjectsBytes and streamsBytes are how long such a page may be, which is more than an
	// honest one has: 160 bytes for each subject, 32 KiB for each stream.
	subjectsBytes = 16 << 20
	streamsBytes  = 8 << 20
	// listBytes is how long all pages of a list may be.
	listBytes = 64 << 20
)

// listed counts the bytes of a list.
type listed int

// add counts a page before it is decoded: the error wraps answer.ErrWrong for one that is too
// long, or makes the list so.
func (l *listed) add(page []byte, most int) error {
	if len(page) > most {
		return fmt.Errorf("%w: a page of %d bytes, more than %d", ErrWrongAnswer, len(page), most)
	}
	if *l += listed(len(page)); *l > listBytes {
		return fmt.Errorf("%w: a list of more than %d bytes", ErrWrongAnswer, listBytes)
	}

	return nil
}

// streamPage is a page of streams, of which it decodes no more than the server sends at once.
type streamPage struct {
	api.JSApiResponse
	api.JSApiIterableResponse
	Streams fewStreams `json:"streams"`
	Missing []string   `json:"missing,omitempty"`
	// size is the size of this page and all pages before it.
	size listed
}

// fewStreams are as many streams as a page has.
type fewStreams []*api.StreamInfo

// UnmarshalJSON decodes one stream after the other, since an empty one takes more than a
// hundred times its bytes.
func (f *fewStreams) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return err // null is no stream
	}
	for dec.More() {
		if len(*f) == streamsAPage {
			return fmt.Errorf("%w: a page of more than %d streams", ErrWrongAnswer, streamsAPage)
		}
		var info *api.StreamInfo
		if err := dec.Decode(&info); err != nil {
			return err
		}
		if info == nil {
			return fmt.Errorf("%w: a stream without info", ErrWrongAnswer)
		}
		*f = append(*f, info)
	}

	return nil
}
