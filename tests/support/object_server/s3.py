"""What listings answer: the XML of ListObjectsV2, and of PROPFIND for object_store's HTTP store."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterable, Mapping
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from support.object_server.messages import Answer, http_date
from support.object_server.objects import Info, Objects

_header = '<?xml version="1.0" encoding="UTF-8"?>\n'
_space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def too_long(key: str) -> bool:
    """Whether S3 takes no such key."""
    return len(key.encode()) > 1024


def _document(text: str) -> Answer:
    return Answer.of_bytes(200, (_header + text).encode())


def buckets(objects: Objects) -> Answer:
    """ListBuckets."""
    rows = "".join(
        f"<Bucket><Name>{escape(name)}</Name><CreationDate>{_time(0)}</CreationDate></Bucket>"
        for name in objects.buckets()
    )
    return _document(
        f"<ListAllMyBucketsResult {_space}><Buckets>{rows}</Buckets></ListAllMyBucketsResult>"
    )


def location() -> Answer:
    """GetBucketLocation: an empty constraint is us-east-1."""
    return _document(f"<LocationConstraint {_space}/>")


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _entries(
    keys: Iterable[tuple[str, Info]], prefix: str, delimiter: str
) -> Iterable[tuple[str, Info | None]]:
    """Keys below a prefix, in order; those with the delimiter further on fold into one, without info."""
    last = None
    for key, info in keys:
        if not key.startswith(prefix):
            continue
        at = key.find(delimiter, len(prefix)) if delimiter else -1
        if at < 0:
            yield key, info
        elif (common := key[: at + len(delimiter)]) != last:
            last = common
            yield common, None


def listing(objects: Objects, bucket: str, query: Mapping[str, str]) -> Answer:
    """ListObjectsV2, with prefix, delimiter, max-keys, start-after and continuation-token."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    token = query.get("continuation-token", "")
    try:
        limit = max(0, min(1000, int(query.get("max-keys", "1000"))))
        after = base64.urlsafe_b64decode(token).decode() if token else query.get("start-after", "")
    except ValueError:
        return Answer.error(400, "InvalidArgument", "max-keys or continuation-token")
    url = query.get("encoding-type") == "url"

    def shown(text: str) -> str:
        return quote(text, safe="/") if url else escape(text)

    found = [
        entry
        for entry in _entries(objects.keys(bucket), prefix, delimiter)
        if entry[0].encode() > after.encode()
    ]
    page = found[:limit]
    rows = "".join(
        f"<CommonPrefixes><Prefix>{shown(key)}</Prefix></CommonPrefixes>"
        if info is None
        else f"<Contents><Key>{shown(key)}</Key><LastModified>{_time(info.modified)}</LastModified>"
        f"<ETag>{escape(info.etag)}</ETag><Size>{info.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for key, info in page
    )
    more = bool(page) and len(found) > limit
    parts = [
        f"<Name>{escape(bucket)}</Name><Prefix>{shown(prefix)}</Prefix>",
        f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{limit}</MaxKeys>",
        f"<IsTruncated>{str(more).lower()}</IsTruncated>",
        f"<Delimiter>{shown(delimiter)}</Delimiter>" if delimiter else "",
        f"<ContinuationToken>{token}</ContinuationToken>" if token else "",
        "<EncodingType>url</EncodingType>" if url else "",
        f"<NextContinuationToken>{_token(page[-1][0])}</NextContinuationToken>" if more else "",
    ]
    return _document(f"<ListBucketResult {_space}>{''.join(parts)}{rows}</ListBucketResult>")


def delete_many(objects: Objects, bucket: str, body: bytes) -> Answer:
    """DeleteObjects: the keys of an XML document, whether or not they are there."""
    try:
        document = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        return Answer.error(400, "MalformedXML", str(error))
    space = document.tag.partition("}")[0] + "}" if document.tag.startswith("{") else ""
    keys = [found.text or "" for found in document.iter(f"{space}Key")]
    rows = ""
    for key in keys:
        if too_long(key):
            rows += f"<Error><Key>{escape(key)}</Key><Code>KeyTooLongError</Code><Message>Your key is too long</Message></Error>"
            continue
        objects.delete(f"{bucket}/{key}")
        rows += f"<Deleted><Key>{escape(key)}</Key></Deleted>"
    return _document(f"<DeleteResult {_space}>{rows}</DeleteResult>")


def _response(path: str, info: Info | None) -> str:
    if info is None:
        kind = "<D:resourcetype><D:collection/></D:resourcetype>"
        kind += f"<D:getlastmodified>{http_date(0)}</D:getlastmodified>"
    else:
        kind = f"<D:resourcetype/><D:getlastmodified>{http_date(info.modified)}</D:getlastmodified>"
        kind += f"<D:getcontentlength>{info.size}</D:getcontentlength>"
        kind += f"<D:getetag>{escape(info.etag)}</D:getetag>"
    return (
        f"<D:response><D:href>/{quote(path)}</D:href><D:propstat><D:prop>{kind}</D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def properties(objects: Objects, path: str, depth: str) -> Answer:
    """PROPFIND of a file or a folder; depth 0 is itself, 1 its members, infinity all below."""
    path = path.strip("/")
    if path and (info := objects.info(path)) is not None:
        rows = [_response(path, info)]
    else:
        bucket, _, key = path.partition("/")
        below = f"{key}/" if key else ""
        rows = [_response(f"{path}/" if path else "", None)]
        for name in [bucket] if bucket else objects.buckets():
            delimiter = "/" if depth == "1" else ""
            for entry, info in _entries(objects.keys(name), below, delimiter):
                rows.append(_response(f"{name}/{entry}", info))
        if len(rows) == 1 and bucket not in ["", *objects.buckets()]:
            return Answer.error(404, "NotFound", path)
        if depth == "0":
            rows = rows[:1]
    text = f'{_header}<D:multistatus xmlns:D="DAV:">{"".join(rows)}</D:multistatus>'
    return Answer.of_bytes(207, text.encode())
