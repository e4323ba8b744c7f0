"""From a request to its answer, with nothing wrong: plain HTTP and a subset of S3 at the same paths.

Objects: GET, HEAD, PUT, DELETE. Buckets: ListBuckets, ListObjectsV2, GetBucketLocation, HeadBucket,
CreateBucket, DeleteObjects. WebDAV: PROPFIND. Signatures are not looked at. What is missing
(multipart uploads, copies) is answered by 501.
"""

from __future__ import annotations

from support.object_server import s3
from support.object_server.conditions import Unsatisfiable, judge, parse_range, range_applies
from support.object_server.messages import Answer, Request, http_date
from support.object_server.objects import Info, Objects


class _Refused(Exception):
    """A conditional write that must not happen."""


def answer(objects: Objects, request: Request) -> Answer:
    """Carry the request out."""
    method, path = request.method, request.path
    if s3.too_long(path.partition("/")[2]):
        return Answer.error(400, "KeyTooLongError", "Your key is too long")
    if method == "PROPFIND":
        return s3.properties(objects, path, request.headers.get("depth", "infinity"))
    bucket, _, key = path.partition("/")
    # A file at the top of a served folder is an object without a bucket.
    if not key and (not bucket or objects.info(bucket) is None):
        return _of_bucket(objects, request, bucket)
    if method in ("GET", "HEAD"):
        return _read(objects, request)
    if method in ("PUT", "DELETE"):
        return _write(objects, request)
    return Answer.error(501, "NotImplemented", f"{method} of an object")


def _of_bucket(objects: Objects, request: Request, bucket: str) -> Answer:
    if request.method == "PUT" and bucket:
        objects.make_bucket(bucket)
        return Answer.of_bytes(200, b"")
    if request.method == "POST" and "delete" in request.query:
        return s3.delete_many(objects, bucket, request.body)
    if request.method not in ("GET", "HEAD"):
        return Answer.error(501, "NotImplemented", f"{request.method} of a bucket")
    if not bucket:
        return s3.buckets(objects)
    if bucket not in objects.buckets():
        return Answer.error(404, "NoSuchBucket", bucket)
    if request.method == "HEAD":
        return Answer(200, {"x-amz-bucket-region": "us-east-1"})
    if "location" in request.query:
        return s3.location()
    if request.query.get("list-type") == "2":
        return s3.listing(objects, bucket, request.query)
    return Answer.error(501, "NotImplemented", "of the listings only ListObjectsV2 is there")


def _missing(objects: Objects, path: str) -> Answer:
    bucket = path.partition("/")[0]
    if bucket in objects.buckets():
        return Answer.error(404, "NoSuchKey", path)
    return Answer.error(404, "NoSuchBucket", bucket)


def _read(objects: Objects, request: Request) -> Answer:
    found = objects.open(request.path)
    if found is None:
        if judge(request.headers, None, True) == 412:
            return Answer.error(412, "PreconditionFailed", request.path)
        return _missing(objects, request.path)
    info, content = found
    headers = {
        "Content-Type": "application/octet-stream",
        "Accept-Ranges": "bytes",
        "ETag": info.etag,
        "Last-Modified": http_date(info.modified),
    }
    status = judge(request.headers, info, True)
    if status is not None:
        content.close()
        if status == 304:
            return Answer(304, headers)
        return Answer.error(412, "PreconditionFailed", request.path, ETag=info.etag)
    asked = None
    if request.method == "GET" and range_applies(request.headers, info):
        try:
            asked = parse_range(request.range, info.size)
        except Unsatisfiable:
            content.close()
            size = f"bytes */{info.size}"
            return Answer.error(416, "InvalidRange", request.range or "", Content_Range=size)
    if asked is None:
        return Answer(200, headers, content, 0, info.size)
    headers["Content-Range"] = f"bytes {asked[0]}-{asked[1] - 1}/{info.size}"
    return Answer(206, headers, content, *asked)


def _write(objects: Objects, request: Request) -> Answer:
    if "uploadId" in request.query or "x-amz-copy-source" in request.headers:
        return Answer.error(501, "NotImplemented", "multipart uploads and copies")

    def check(info: Info | None) -> None:
        if judge(request.headers, info, False) is not None:
            raise _Refused

    try:
        if request.method == "DELETE":
            objects.delete(request.path, check)
            return Answer(204)
        info = objects.put(request.path, request.body, check)
    except _Refused:
        return Answer.error(412, "PreconditionFailed", request.path)
    except ValueError as error:
        return Answer.error(400, "InvalidArgument", str(error))
    return Answer(200, {"ETag": info.etag})
