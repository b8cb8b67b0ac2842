package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MaxBody is the greatest size of a review, in bytes: the API server's own
// bound of 3 MiB for an object, twice, and room for the envelope.
const MaxBody = 7 << 20

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
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("the ConversionReview is larger than %d bytes", MaxBody), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("failed to read the ConversionReview: %v", err), http.StatusBadRequest)
		return
	}
	review, err := parseReview(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	converted, err := h.convert(review)
	if h.Observe != nil {
		h.Observe(time.Since(start), err == nil)
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that is gone cannot be told.
	_, _ = w.Write(encodeResponse(review.uid, converted, err))
}

// convert converts all objects of a review, or none.
func (h *Handler) convert(review *review) (converted [][]byte, err error) {
	at := 0
	defer func() {
		if value := recover(); value != nil {
			if h.Panicked != nil {
				h.Panicked(value, debug.Stack())
			}
			converted, err = nil, fmt.Errorf("failed to convert objects[%d]: Penstock panicked; this is a fault in Penstock, not in the object", at)
		}
	}()
	converted = make([][]byte, len(review.objects))
	for i, object := range review.objects {
		at = i
		if converted[i], err = Convert(object, review.desired); err != nil {
			return nil, fmt.Errorf("failed to convert objects[%d]%s to %s: %w", i, describe(object), review.desired, err)
		}
	}
	return converted, nil
}

// A review is what /convert reads of a ConversionReview.
type review struct {
	uid     string
	desired schema.GroupVersion
	objects [][]byte
}

func parseReview(body []byte) (*review, error) {
	envelope := struct {
		apiVersion, kind string
		request          jsontext.Value
	}{}
	err := eachMember(body, func(name string, value jsontext.Value) error {
		switch name {
		case "apiVersion":
			envelope.apiVersion = unquote(value)
		case "kind":
			envelope.kind = unquote(value)
		case "request":
			envelope.request = value
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to read the ConversionReview: %w", err)
	case envelope.kind != "ConversionReview" || envelope.apiVersion != reviewVersion:
		return nil, fmt.Errorf("the body must be a ConversionReview of %s, not kind %q of %q", reviewVersion, envelope.kind, envelope.apiVersion)
	case envelope.request.Kind() != jsontext.KindBeginObject:
		return nil, errors.New("the ConversionReview has no request")
	}
	return parseRequest(envelope.request)
}

func parseRequest(request jsontext.Value) (*review, error) {
	r := &review{}
	desired := ""
	err := eachMember(request, func(name string, value jsontext.Value) (err error) {
		switch name {
		case "uid":
			r.uid = unquote(value)
		case "desiredAPIVersion":
			desired = unquote(value)
		case "objects":
			r.objects, err = items(value)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("failed to read the request of the ConversionReview: %w", err)
	}
	if r.desired, err = schema.ParseGroupVersion(desired); err != nil || desired == "" {
		return nil, fmt.Errorf("the request of the ConversionReview has no valid desiredAPIVersion: %q", desired)
	}
	return r, nil
}

// eachMember calls visit with every member of a JSON object. The value is only
// valid as long as raw is.
func eachMember(raw []byte, visit func(name string, value jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), readOptions...)
	if dec.PeekKind() != jsontext.KindBeginObject {
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		return errors.New("it must be a JSON object")
	}
	_, _ = dec.ReadToken()
	for dec.PeekKind() != jsontext.KindEndObject {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		if err := visit(name, raw[end-int64(len(value)):end]); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("there is something after the JSON object")
	}
	return nil
}

func items(raw jsontext.Value) ([][]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), readOptions...)
	if dec.PeekKind() != jsontext.KindBeginArray {
		return nil, errors.New("objects must be a list")
	}
	_, _ = dec.ReadToken()
	var all [][]byte
	for dec.PeekKind() != jsontext.KindEndArray {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := dec.InputOffset()
		all = append(all, raw[end-int64(len(value)):end])
	}
	return all, nil
}

func encodeResponse(uid string, converted [][]byte, failure error) []byte {
	size := 256 + len(uid)
	for _, object := range converted {
		size += len(object) + 1
	}
	out := append(make([]byte, 0, size), `{"kind":"ConversionReview","apiVersion":"`+reviewVersion+`","response":{"uid":`...)
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
		out = append(out, object...)
	}
	return append(out, `],"result":{"status":"Success"}}}`...)
}

// describe names an object for an error, as far as it can be read.
func describe(raw []byte) string {
	object, err := splitObject(raw)
	if err != nil {
		return ""
	}
	name, namespace := "", ""
	_ = eachMember(object.metadata, func(member string, value jsontext.Value) error {
		switch member {
		case "name":
			name = unquote(value)
		case "namespace":
			namespace = unquote(value) + "/"
		}
		return nil
	})
	if name == "" {
		return fmt.Sprintf(" (%s %s)", object.apiVersion, object.kind)
	}
	return fmt.Sprintf(" (%s %s %s%s)", object.apiVersion, object.kind, namespace, name)
}
