package queue_annotations_test

import data.queue_annotations

fields(metadata, template) := found if {
	found := {v.field | some v in queue_annotations.violation} with input as {"object": {
		"apiVersion": "batch/v1",
		"kind": "Job",
		"metadata": metadata,
		"spec": {"template": {"metadata": template, "spec": {}}},
	}}
}

test_where_they_are_read if {
	fields(
		{"labels": {"kueue.x-k8s.io/queue-name": "a"}, "annotations": {"note": "b"}},
		{"labels": {"kueue.x-k8s.io/queue-name": "a"}, "annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
	) == set()
}

test_where_they_are_not if {
	fields({"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}, {}) == {"metadata.annotations[kueue.x-k8s.io/podset-required-topology]"}
	fields({"annotations": {"kueue.x-k8s.io/queue-name": "a"}}, {}) == {"metadata.annotations[kueue.x-k8s.io/queue-name]"}
	fields({}, {"labels": {"kueue.x-k8s.io/queue-name": "a"}}) == {"spec.template.metadata.labels[kueue.x-k8s.io/queue-name]"}
}

test_contradictions if {
	fields({}, {"annotations": {
		"kueue.x-k8s.io/podset-required-topology": "rack",
		"kueue.x-k8s.io/podset-preferred-topology": "rack",
	}}) == {"spec.template.metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]"}
}
