package webtest

import (
	"io"
	"net/http"
)

// Status answers with a code, and with headers given as name and value in turn.
func Status(code int, headers ...string) Answer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// Plain answers with the file and default headers.
func Plain() Answer {
	return func(w http.ResponseWriter, r *http.Request, file http.Handler) { file.ServeHTTP(w, r) }
}

// With answers with additional headers, given as name and value in turn, and the whole file.
func With(code int, body string, headers ...string) Answer {
	return func(w http.ResponseWriter, r *http.Request, file http.Handler) {
		Status(code, headers...)(w, r, file)
		_, _ = io.WriteString(w, body)
	}
}

// Cut breaks the connection after so many bytes of the file.
func Cut(after int64) Answer {
	return func(w http.ResponseWriter, r *http.Request, file http.Handler) {
		file.ServeHTTP(&limited{ResponseWriter: w, left: after, end: func() { panic(http.ErrAbortHandler) }}, r)
	}
}

// Stall stops after n bytes until the client disconnects.
func Stall(after int64) Answer {
	return func(w http.ResponseWriter, r *http.Request, file http.Handler) {
		end := func() {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		if after == 0 {
			end()
		}
		file.ServeHTTP(&limited{ResponseWriter: w, left: after, end: end}, r)
	}
}

// limited ends an answer after left bytes of its body.
type limited struct {
	http.ResponseWriter
	left int64
	end  func()
}

// Write sends until the limit.
func (l *limited) Write(b []byte) (int, error) {
	n := min(int64(len(b)), l.left)
	written, err := l.ResponseWriter.Write(b[:n])
	if l.left -= int64(written); l.left <= 0 {
		_ = http.NewResponseController(l.ResponseWriter).Flush()
		l.end()
	}

	return written, err
}

// SwitchProtocols takes over the connection like a WebSocket, and stays silent until end is closed.
func SwitchProtocols(end <-chan struct{}) Answer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		_, _ = io.WriteString(b, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: silence\r\n\r\n")
		_ = b.Flush() // the client notices
		<-end
	}
}

// ServeHTTP answers a request that is for no file.
func (a Answer) ServeHTTP(w http.ResponseWriter, r *http.Request) { a(w, r, http.NotFoundHandler()) }
