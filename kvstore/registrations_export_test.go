package kvstore

// DecodeRegistration gives a test what is made of a registration on a subject.
func DecodeRegistration(n Names, subject string, data []byte) (Registered, error) {
	return decodeRegistration(n, Message{Subject: subject, Data: data})
}
