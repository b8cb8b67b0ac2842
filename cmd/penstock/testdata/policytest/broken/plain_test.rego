package plain_test

import data.plain

test_calls_out if http.send({"method": "get", "url": "http://example.com"}).status_code == 200
