package registrations

import "github.com/musterfleet/muster/kvstore"

// DecodeRegistration gives a test what is made of a registration on a subject.
func DecodeRegistration(n kvstore.Names, subject string, data []byte) (Registered, error) {
	return decodeRegistration(n, kvstore.Message{Subject: subject, Data: data})
}
