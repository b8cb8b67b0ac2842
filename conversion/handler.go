package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// MaxBody is the greatest size of a review, in bytes: the API server's own
// bound of 3 MiB for an object, twice, and room for the envelope.
const MaxBody = 7 << 20

// BodyWait is how long a review may take to arrive: as long as the API server
// waits for an answer, unless it is told otherwise.
const BodyWait = 10 * time.Second

const reviewVersion = "apiextensions.k8s.io/v1"

// Handler answers the API server's ConversionReviews at /convert.
//
// A body that is no ConversionReview gets status 400, one beyond MaxBody 413.
// A review that can be read is always answered with 200 and its uid; when an
// object in it cannot be converted the result is a Failure that names it.
type Handler struct {
	// Observe, when set, is told of every review that was answered: how long
	// it took and whether all its objects were converted.
	Observe func(took time.Duration, ok bool)
	// Panicked, when set, is told of every panic that was recovered.
	Panicked func(value any, stack []byte)
}

// ServeHTTP answers one review.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a ConversionReview must be sent by POST", http.StatusMethodNotAllowed)
		return
	}
	text := texts.Get().(*texting)
	defer text.free()
	err := readBody(w, req, &text.body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, fmt.Sprintf("the ConversionReview is larger than %d bytes", MaxBody), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("failed to read the ConversionReview: %v", err), http.StatusBadRequest)
		return
	}
	review, err := parseReview(text.body.Bytes())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	converted, err := h.convert(review)
	if h.Observe != nil {
		h.Observe(time.Since(start), err == nil)
	}
	w.Header().Set("Content-Type", "application/json")
	text.answer = appendResponse(text.answer[:0], review.uid, converted, err)
	if _, err := w.Write(text.answer); err != nil {
		// The client is gone and cannot be told; whether the server is done with
		// the answer cannot be told either.
		text.answer = nil
	}
}

// texting is the memory of one review and its answer, which refers to it.
type texting struct {
	body   bytes.Buffer
	answer []byte
}

// maxKept is the greatest text, in bytes, whose memory is used again: nearly all
// objects are smaller, and a few great ones shall not fill the pool.
const maxKept = 64 << 10

var texts = sync.Pool{New: func() any { return &texting{} }}

func (t *texting) free() {
	if t.body.Cap() > maxKept || cap(t.answer) > maxKept {
		return
	}
	t.body.Reset()
	texts.Put(t)
}

// ReadBody reads a request's body of at most MaxBody bytes; beyond that the
// error is an *http.MaxBytesError. A body that has not come to its end within
// BodyWait is given up, or whoever sends one without end would be waited for.
func ReadBody(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	var body bytes.Buffer
	err := readBody(w, req, &body)
	return body.Bytes(), err
}

func readBody(w http.ResponseWriter, req *http.Request, body *bytes.Buffer) error {
	// Where there is no connection, as in some tests, there is nothing to bound.
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(BodyWait))
	if size := req.ContentLength; size > 0 && size <= MaxBody {
		body.Grow(int(size) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, req.Body, MaxBody))
	if err == nil {
		// What follows takes the time it is given. After an error the deadline
		// stays: the server reads on before it answers.
		_ = connection.SetReadDeadline(time.Time{})
	}
	return err
}

// convert converts all objects of a review, or none.
func (h *Handler) convert(review *review) (converted []*rawObject, err error) {
	at := 0
	defer func() {
		if value := recover(); value != nil {
			if h.Panicked != nil {
				h.Panicked(value, debug.Stack())
			}
			converted, err = nil, fmt.Errorf("failed to convert objects[%d]: Penstock panicked; this is a fault in Penstock, not in the object", at)
		}
	}()
	converted = make([]*rawObject, len(review.objects))
	for i, reviewed := range review.objects {
		at = i
		if reviewed.err != nil {
			return nil, fmt.Errorf("failed to read objects[%d]: %w", i, reviewed.err)
		}
		was := *reviewed.object
		if err := reviewed.object.convert(review.desired); err != nil {
			return nil, fmt.Errorf("failed to convert objects[%d]%s to %s: %w", i, describe(&was), review.desired, err)
		}
		converted[i] = reviewed.object
	}
	return converted, nil
}

// A review is what /convert reads of a ConversionReview.
type review struct {
	uid     string
	desired schema.GroupVersion
	objects []reviewed
	// typed says whether specs are decoded as they are read.
	typed bool
}

// A reviewed object is read with the review, so that no byte is scanned twice;
// err says why it could not be.
type reviewed struct {
	object *rawObject
	err    error
}

func parseReview(body []byte) (*review, error) {
	r, err := readReview(body, true)
	if errors.Is(err, errIllTyped) {
		return readReview(body, false)
	}
	return r, err
}

// readReview reads a review; typed says whether specs are decoded on the way.
func readReview(body []byte, typed bool) (*review, error) {
	r := &review{typed: typed}
	apiVersion, kind, desired, found := "", "", "", false
	in := newScanner(body)
	defer in.free()
	err := in.object(func(name string) (err error) {
		switch name {
		case "apiVersion":
			apiVersion, err = in.text()
		case "kind":
			kind, err = in.text()
		case "request":
			if found = in.dec.PeekKind() == jsontext.KindBeginObject; found {
				desired, err = r.read(in)
				return err
			}
			_, err = in.value()
		default:
			_, err = in.value()
		}
		return err
	})
	if err == nil {
		err = in.end()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to read the ConversionReview: %w", err)
	case kind != "ConversionReview" || apiVersion != reviewVersion:
		return nil, fmt.Errorf("the body must be a ConversionReview of %s, not kind %q of %q", reviewVersion, kind, apiVersion)
	case !found:
		return nil, errors.New("the ConversionReview has no request")
	}
	if r.desired, err = schema.ParseGroupVersion(desired); err != nil || desired == "" {
		return nil, fmt.Errorf("the request of the ConversionReview has no valid desiredAPIVersion: %q", desired)
	}
	return r, nil
}

// read reads the request of a review, and gives the desired version.
func (r *review) read(in *scanner) (desired string, err error) {
	wanted := func(object *rawObject) *half {
		if !r.typed || bytes.Contains(object.metadata, []byte(v1.RestoreAnnotation)) {
			return nil
		}
		return directionOf(object.gvk(), desired)
	}
	err = in.object(func(name string) (err error) {
		switch name {
		case "uid":
			r.uid, err = in.text()
		case "desiredAPIVersion":
			desired, err = in.text()
		case "objects":
			return in.list("objects", func() error {
				if in.dec.PeekKind() != jsontext.KindBeginObject {
					r.objects = append(r.objects, reviewed{err: errNoObject})
					_, err := in.value()
					return err
				}
				object, err := readRawObject(in, wanted)
				r.objects = append(r.objects, reviewed{object: object})
				return err
			})
		default:
			_, err = in.value()
		}
		return err
	})
	return desired, err
}

func appendResponse(out []byte, uid string, converted []*rawObject, failure error) []byte {
	size := 256 + len(uid)
	for _, object := range converted {
		size += object.size() + 1
	}
	out = append(slices.Grow(out, size), `{"kind":"ConversionReview","apiVersion":"`+reviewVersion+`","response":{"uid":`...)
	out = appendString(out, uid)
	if failure != nil {
		out = append(out, `,"convertedObjects":[],"result":{"status":"Failure","reason":"BadRequest","code":400,"message":`...)
		out = appendString(out, failure.Error())
		return append(out, "}}}"...)
	}
	out = append(out, `,"convertedObjects":[`...)
	for i, object := range converted {
		if i > 0 {
			out = append(out, ',')
		}
		out = object.appendTo(out)
	}
	return append(out, `],"result":{"status":"Success"}}}`...)
}

// describe names an object for an error, as far as it can be read.
func describe(object *rawObject) string {
	name, namespace := "", ""
	in := newScanner(object.metadata)
	defer in.free()
	_ = in.object(func(member string) (err error) {
		switch member {
		case "name":
			name, err = in.text()
		case "namespace":
			namespace, err = in.text()
			namespace += "/"
		default:
			_, err = in.value()
		}
		return err
	})
	if name == "" {
		return fmt.Sprintf(" (%s %s)", object.apiVersion, object.kind)
	}
	return fmt.Sprintf(" (%s %s %s%s)", object.apiVersion, object.kind, namespace, name)
}
