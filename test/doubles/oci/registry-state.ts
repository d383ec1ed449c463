import { createHash, randomUUID } from 'node:crypto';
import type { Reply } from '../loopback-server.ts';

/** A request to the double. Its path is relative to the repository. */
export interface StateRequest {
  readonly method: string;
  /** `manifests/debian-latest`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface StateOptions {
  /** True if an upload is lost when a chunk breaks off, as Distribution 2 does. Default false. */
  readonly losesBrokenChunks?: boolean;
  /** Max tags in one response. Default: as many as requested. */
  readonly pageSize?: number;
  /** Min size of a chunk in bytes, except for the last one. Default: none. */
  readonly minChunkSize?: number;
  /** True if manifests can be deleted. Default true. */
  readonly permitsDeletion?: boolean;
}

interface Upload {
  bytes: Buffer;
}

interface Manifest {
  readonly type: string;
  readonly body: Buffer;
}

/** Returns an error response (OCI distribution specification, "Error Codes"). */
export function errorReply(status: number, code: string, message: string): Reply {
  const headers = { 'content-type': 'application/json' };
  return { status, headers, body: JSON.stringify({ errors: [{ code, message }] }) };
}

const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[\da-f]{64}$/;

function contentDigest(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** One repository according to the OCI distribution specification 1.1. */
export class RegistryState {
  readonly blobs = new Map<string, Buffer>();
  readonly manifests = new Map<string, Manifest>();
  /** Digests by tag. */
  readonly tags = new Map<string, string>();
  readonly uploads = new Map<string, Upload>();
  readonly #prefix: string;
  readonly #options: StateOptions;

  /** @param prefix prefix of all paths: `/v2/ci/images/` */
  constructor(prefix: string, options: StateOptions = {}) {
    this.#prefix = prefix;
    this.#options = options;
  }

  /** @param isBroken whether the connection was closed before the end of the body */
  respond(request: StateRequest, isBroken = false): Reply {
    const { method, path } = request;
    const [kind, reference = '', upload] = path.split('/');
    if (kind === 'tags' && method === 'GET') return this.#list(request);
    if (kind === 'manifests') return this.#manifest(request, reference);
    if (kind === 'blobs' && reference === 'uploads') return this.#upload(request, upload ?? '', isBroken);
    if (kind === 'blobs') return this.#blob(request, reference);
    return errorReply(404, 'UNSUPPORTED', `there is no ${path}`);
  }

  #list({ query }: StateRequest): Reply {
    if (this.tags.size === 0) return errorReply(404, 'NAME_UNKNOWN', 'repository name not known to registry');
    const rest = [...this.tags.keys()].toSorted().filter((tag) => tag > (query.get('last') ?? ''));
    const page = rest.slice(
      0,
      Math.min(Number(query.get('n') ?? rest.length), this.#options.pageSize ?? rest.length),
    );
    const next = `${this.#prefix}tags/list?n=${query.get('n')}&last=${page.at(-1)}`;
    const headers = { ...(page.length < rest.length && { link: `<${next}>; rel="next"` }) };
    return { status: 200, headers, body: JSON.stringify({ name: 'ci/images', tags: page }) };
  }

  #blob({ method }: StateRequest, digest: string): Reply {
    const blob = this.blobs.get(digest);
    if (blob === undefined) return errorReply(404, 'BLOB_UNKNOWN', 'blob unknown to registry');
    if (method === 'GET') return { status: 200, body: blob };
    if (method === 'HEAD') return { status: 200, headers: { 'content-length': String(blob.length) } };
    return errorReply(405, 'UNSUPPORTED', 'the operation is unsupported');
  }

  #manifest(request: StateRequest, reference: string): Reply {
    const { method, headers } = request;
    if (method === 'PUT') return this.#putManifest(request, reference);
    const digest = DIGEST.test(reference) ? reference : this.tags.get(reference);
    const manifest = this.manifests.get(digest ?? '');
    if (method === 'DELETE' && !(DIGEST.test(reference) && (this.#options.permitsDeletion ?? true))) {
      return errorReply(405, 'UNSUPPORTED', 'the operation is unsupported');
    }
    if (manifest === undefined || digest === undefined) {
      return errorReply(404, 'MANIFEST_UNKNOWN', 'manifest unknown');
    }
    if (method === 'DELETE') {
      this.manifests.delete(digest);
      for (const [tag, named] of this.tags) if (named === digest) this.tags.delete(tag);
      return { status: 202 };
    }
    if (!String(headers.accept).includes(manifest.type)) {
      return errorReply(404, 'MANIFEST_UNKNOWN', `the client does not accept ${manifest.type}`);
    }
    const found = { 'content-type': manifest.type, 'docker-content-digest': digest };
    return { status: 200, headers: found, body: manifest.body };
  }

  #putManifest({ headers, body }: StateRequest, reference: string): Reply {
    const digest = contentDigest(body);
    if (!TAG.test(reference) && reference !== digest) {
      return errorReply(400, 'DIGEST_INVALID', 'provided digest did not match uploaded content');
    }
    const content = JSON.parse(body.toString());
    const type = String(headers['content-type']);
    if (content.schemaVersion !== 2 || (content.mediaType ?? type) !== type) {
      return errorReply(400, 'MANIFEST_INVALID', 'manifest invalid');
    }
    for (const blob of [...(content.config ? [content.config] : []), ...(content.layers ?? [])]) {
      if (this.blobs.get(blob.digest)?.length !== blob.size) {
        return errorReply(404, 'MANIFEST_BLOB_UNKNOWN', 'blob unknown to registry');
      }
    }
    for (const child of content.manifests ?? []) {
      if (!this.manifests.has(child.digest))
        return errorReply(404, 'MANIFEST_BLOB_UNKNOWN', 'blob unknown to registry');
    }
    this.manifests.set(digest, { type, body });
    if (reference !== digest) this.tags.set(reference, digest);
    return { status: 201, headers: { 'docker-content-digest': digest } };
  }

  #upload(request: StateRequest, id: string, isBroken: boolean): Reply {
    const { method, query, body } = request;
    if (method === 'POST') {
      const created = randomUUID();
      this.uploads.set(created, { bytes: Buffer.alloc(0) });
      const { minChunkSize } = this.#options;
      const headers = minChunkSize === undefined ? {} : { 'oci-chunk-min-length': String(minChunkSize) };
      return { status: 202, headers: { ...headers, ...this.#location(created) } };
    }
    const upload = this.uploads.get(id);
    if (upload === undefined)
      return errorReply(404, 'BLOB_UPLOAD_UNKNOWN', 'blob upload unknown to registry');
    if (method === 'GET') return { status: 204, headers: this.#location(id) };
    if (method === 'DELETE') {
      this.uploads.delete(id);
      return { status: 204 };
    }
    const start = /^(?<start>\d+)-\d+$/.exec(String(request.headers['content-range']))?.groups?.start;
    if (method === 'PATCH' && Number(start) !== upload.bytes.length) {
      return errorReply(416, 'BLOB_UPLOAD_INVALID', `the next byte is ${upload.bytes.length}`);
    }
    upload.bytes = Buffer.concat([upload.bytes, body]);
    if (isBroken && this.#options.losesBrokenChunks) this.uploads.delete(id);
    if (method === 'PATCH') return { status: 202, headers: this.#location(id) };
    const digest = contentDigest(upload.bytes);
    this.uploads.delete(id);
    if (query.get('digest') !== digest) {
      return errorReply(400, 'DIGEST_INVALID', 'provided digest did not match uploaded content');
    }
    this.blobs.set(digest, upload.bytes);
    return { status: 201, headers: { location: `${this.#prefix}blobs/${digest}` } };
  }

  /** Returns location and length of an upload. */
  #location(id: string): Record<string, string> {
    const { length } = this.uploads.get(id)?.bytes ?? [];
    const location = `${this.#prefix}blobs/uploads/${id}?_state=${length}`;
    return { location, range: `0-${Math.max(0, length - 1)}`, 'docker-upload-uuid': id };
  }
}
