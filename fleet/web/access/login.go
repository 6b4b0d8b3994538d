package access

import (
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// signedInFor is the lifetime of a session with a token.
	signedInFor = 7 * 24 * time.Hour
	maxForm     = 8 << 10
	// maxNext is the maximum length of the target after sign-in: cookies have 4 KB.
	maxNext = 1500
)

//go:embed login.css
var style string

//go:embed login.html
var pageText string

// pageData is the content of the page: the form, or with Continue a link to Next.
type pageData struct {
	Next    string
	Form    bool
	OIDC    bool
	Tokens  bool
	Problem string
	Style   template.CSS
}

// page answers with the page to sign in.
func page(w http.ResponseWriter, status int, data pageData) {
	digest := sha256.Sum256([]byte(style))
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	data.Next, data.Style = localPath(data.Next), template.CSS(style)
	_ = template.Must(template.New("login").Parse(pageText)).Execute(w, data)
}

// localPath returns a path of this server, / for anything else.
func localPath(next string) string {
	at, err := url.Parse(next)
	if err != nil || len(next) > maxNext || at.Scheme != "" || at.Host != "" || at.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}

	return next
}

func (g *Guard) showLogin(w http.ResponseWriter, r *http.Request) {
	g.loginPage(w, http.StatusOK, r.URL.Query().Get("next"), "")
}

func (g *Guard) loginPage(w http.ResponseWriter, status int, next, problem string) {
	page(w, status, pageData{Form: true, Next: next, Problem: problem, Tokens: g.tokens != nil, OIDC: g.provider != nil})
}

// login starts a session for the token in the form.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := localPath(r.PostFormValue("next"))
	text := strings.TrimSpace(r.PostFormValue("token"))
	if _, ok := g.userOfToken(text); !ok {
		if !g.failed(w, r) {
			g.loginPage(w, http.StatusUnauthorized, next, "This is no token of this server, or it was taken out of its file.")
		}
		return
	}
	http.SetCookie(w, g.cookie(r, g.sessions.begin(text, time.Now()), signedInFor))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (g *Guard) logout(w http.ResponseWriter, r *http.Request) {
	for _, id := range cookiesOf(r, g.cookieNames(r)...) {
		g.sessions.end(id)
	}
	http.SetCookie(w, g.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
