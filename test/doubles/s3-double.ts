import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { resetConnection } from '../fixtures/reset-connection.ts';

/** A request that a fault can apply to. */
export interface S3Request {
  /** Name in the API reference: `UploadPart`. */
  readonly operation: string;
  readonly key: string;
  readonly accessKeyId: string;
  readonly headers: IncomingMessage['headers'];
}

/** Fault to inject into a request. */
export interface S3Fault {
  /** Error code to send instead of carrying out the operation. */
  readonly refuse?: string;
  readonly message?: string;
  /** True if the operation is carried out, but the connection is closed without a response. */
  readonly loseResponse?: boolean;
  /** Number of bytes of the body after which the response is cut. */
  readonly cutAfter?: number;
}

interface StoredObject {
  readonly body: Buffer;
  readonly etag: string;
  readonly metadata: Readonly<Record<string, string>>;
}

interface Multipart {
  readonly key: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly parts: Map<number, { readonly etag: string; readonly body: Buffer }>;
}

/** A bucket in memory with the operations of the published S3 API that the provider uses. */
export interface S3Double {
  readonly endpoint: string;
  readonly objects: Map<string, StoredObject>;
  readonly multiparts: Map<string, Multipart>;
  readonly requests: S3Request[];
  /** Called with each request, before its operation. */
  fault: (request: S3Request) => S3Fault | undefined | Promise<S3Fault | undefined>;
  readonly stop: () => Promise<void>;
}

class S3Error extends Error {
  readonly code: string;
  constructor(code: string, message = code) {
    super(message);
    this.code = code;
  }
}

const STATUS: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  ExpiredToken: 400,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  PreconditionFailed: 412,
};

/** @param isEncrypted whether the bucket's default encryption is SSE-KMS, so that ETags are not digests of the bytes */
export async function startS3Double(isEncrypted = false): Promise<S3Double> {
  const objects = new Map<string, StoredObject>();
  const multiparts = new Map<string, Multipart>();
  const etagOf = (body: Buffer): string => `"${isEncrypted ? md5(Buffer.from(randomUUID())) : md5(body)}"`;
  const put = (
    key: string,
    body: Buffer,
    metadata: StoredObject['metadata'],
    etag = etagOf(body),
  ): string => {
    objects.set(key, { body, etag, metadata });
    return etag;
  };
  const multipartOf = (key: string, id: string | null): Multipart => {
    const multipart = multiparts.get(id ?? '');
    if (multipart?.key !== key) throw new S3Error('NoSuchUpload');
    return multipart;
  };
  const encryption = { 'x-amz-server-side-encryption': isEncrypted ? 'aws:kms' : 'AES256' };

  const operate = (
    { operation, key, headers }: S3Request,
    query: URLSearchParams,
    body: Buffer,
  ): { status?: number; headers?: Record<string, string>; body?: string | Buffer } => {
    const sum = headers['content-md5'];
    if (sum !== undefined && sum !== createHash('md5').update(body).digest('base64'))
      throw new S3Error('BadDigest');
    const id = query.get('uploadId');
    switch (operation) {
      case 'ListObjectsV2': {
        const [prefix, delimiter] = [query.get('prefix') ?? '', query.get('delimiter')];
        const keys = [...objects.keys()].filter(
          (each) => each.startsWith(prefix) && !(delimiter && each.slice(prefix.length).includes(delimiter)),
        );
        const contents = keys.toSorted().map((each) => {
          const { body: bytes, etag } = objects.get(each) as StoredObject;
          return `<Contents><Key>${each}</Key><Size>${bytes.length}</Size><ETag>${etag}</ETag><LastModified>${TIME}</LastModified></Contents>`;
        });
        return {
          body: `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`,
        };
      }
      case 'PutObject':
        return { headers: { etag: put(key, body, metadataIn(headers)), ...encryption } };
      case 'HeadObject':
      case 'GetObject': {
        const object = objects.get(key);
        if (object === undefined) throw new S3Error('NoSuchKey');
        if ((headers['if-match'] ?? object.etag) !== object.etag) throw new S3Error('PreconditionFailed');
        const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
        const tags = Object.entries(object.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]);
        const all = {
          etag: object.etag,
          ...encryption,
          ...(Object.fromEntries(tags) as Record<string, string>),
        };
        if (headers.range === undefined) return { headers: all, body: object.body };
        const size = object.body.length;
        const range = { 'content-range': `bytes ${from}-${size - 1}/${size}` };
        return { status: 206, headers: { ...all, ...range }, body: object.body.subarray(from) };
      }
      case 'DeleteObject':
        objects.delete(key);
        return { status: 204 };
      case 'CreateMultipartUpload': {
        const created = randomUUID();
        multiparts.set(created, { key, metadata: metadataIn(headers), parts: new Map() });
        const text = `<InitiateMultipartUploadResult><UploadId>${created}</UploadId></InitiateMultipartUploadResult>`;
        return { headers: encryption, body: text };
      }
      case 'UploadPart': {
        const etag = etagOf(body);
        multipartOf(key, id).parts.set(Number(query.get('partNumber')), { etag, body });
        return { headers: { etag, ...encryption } };
      }
      case 'ListParts': {
        const parts = [...multipartOf(key, id).parts].map(
          ([number, { etag, body: bytes }]) =>
            `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag><Size>${bytes.length}</Size><LastModified>${TIME}</LastModified></Part>`,
        );
        return {
          body: `<ListPartsResult><IsTruncated>false</IsTruncated>${parts.join('')}</ListPartsResult>`,
        };
      }
      case 'CompleteMultipartUpload': {
        const { parts, metadata } = multipartOf(key, id);
        const named = [...String(body).matchAll(/<Part>.*?<\/Part>/gs)].map(([part]) => {
          const number = Number(/<PartNumber>(\d+)</.exec(part)?.[1]);
          const etag = /<ETag>(?:&quot;|")?([^<&"]+)/.exec(part)?.[1];
          const stored = parts.get(number);
          if (stored?.etag !== `"${etag}"`) throw new S3Error('InvalidPart');
          return stored;
        });
        const sums = named.map(({ etag }) => Buffer.from(etag.replaceAll('"', ''), 'hex'));
        const etag = `"${md5(Buffer.concat(sums))}-${named.length}"`;
        put(key, Buffer.concat(named.map(({ body: bytes }) => bytes)), metadata, etag);
        multiparts.delete(id ?? '');
        return {
          body: `<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`,
        };
      }
      case 'AbortMultipartUpload':
        multipartOf(key, id);
        multiparts.delete(id ?? '');
        return { status: 204 };
      case 'ListMultipartUploads': {
        const uploads = [...multiparts].flatMap(([upload, { key: each }]) =>
          each.startsWith(query.get('prefix') ?? '')
            ? `<Upload><Key>${each}</Key><UploadId>${upload}</UploadId></Upload>`
            : [],
        );
        return {
          body: `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${uploads.join('')}</ListMultipartUploadsResult>`,
        };
      }
      default:
        throw new S3Error('NotImplemented');
    }
  };

  const respond = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(message);
    const { pathname, searchParams } = new URL(message.url ?? '', 'http://localhost');
    const [, , ...segments] = pathname.split('/');
    const key = decodeURIComponent(segments.join('/'));
    const accessKeyId = /Credential=([^/]+)/.exec(message.headers.authorization ?? '')?.[1] ?? '';
    const operation = operationOf(message.method ?? '', key, searchParams);
    const request: S3Request = { operation, key, accessKeyId, headers: message.headers };
    double.requests.push(request);
    try {
      const fault = await double.fault(request);
      if (fault?.refuse) throw new S3Error(fault.refuse, fault.message);
      const { status = 200, headers = {}, body: text = '' } = operate(request, searchParams, body);
      if (fault?.loseResponse) {
        resetConnection(message.socket);
        return;
      }
      const bytes = Buffer.from(text as string);
      response.writeHead(status, { ...headers, ...(status !== 204 && { 'content-length': bytes.length }) });
      if (fault?.cutAfter === undefined || message.method === 'HEAD') response.end(bytes);
      else response.write(bytes.subarray(0, fault.cutAfter), () => message.socket.destroy());
    } catch (error) {
      const { code, message: reason } =
        error instanceof S3Error ? error : new S3Error('InternalError', String(error));
      response.writeHead(STATUS[code] ?? 400, { 'content-type': 'application/xml' });
      response.end(`<Error><Code>${code}</Code><Message>${reason}</Message></Error>`);
    }
  };
  const server = createServer(
    (message, response) => void respond(message, response).catch(() => message.destroy()),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const double: S3Double = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    multiparts,
    requests: [],
    fault: () => undefined,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return double;
}

function md5(body: Buffer): string {
  return createHash('md5').update(body).digest('hex');
}

const TIME = '2026-05-01T00:00:00.000Z';

function metadataIn(headers: IncomingMessage['headers']): Record<string, string> {
  const PREFIX = 'x-amz-meta-';
  const own = Object.entries(headers).filter(([name]) => name.startsWith(PREFIX));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(PREFIX.length), String(value)]));
}

function operationOf(method: string, key: string, query: URLSearchParams): string {
  const names: Readonly<Record<string, string | undefined>> = query.has('uploadId')
    ? { GET: 'ListParts', PUT: 'UploadPart', POST: 'CompleteMultipartUpload', DELETE: 'AbortMultipartUpload' }
    : query.has('uploads')
      ? { GET: 'ListMultipartUploads', POST: 'CreateMultipartUpload' }
      : {
          GET: key ? 'GetObject' : 'ListObjectsV2',
          HEAD: 'HeadObject',
          PUT: 'PutObject',
          DELETE: 'DeleteObject',
        };
  return names[method] ?? method;
}
