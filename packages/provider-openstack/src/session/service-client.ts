import type { IncomingHttpHeaders } from 'node:http';

export type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** How a small request is made, and what its answer has to be. */
export interface JsonOptions<T> {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`; Glance wants `application/openstack-images-v2.1-json-patch` for PATCH. */
  readonly contentType?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Statuses that are no error. Default: 200 to 299. */
  readonly expect?: readonly number[];
  /**
   * Makes the answer's value of the parsed JSON body (`undefined` if the body is empty or no JSON). What it throws
   * becomes an `invalid-answer`. Without it the value is `undefined`.
   */
  readonly validate?: (value: unknown) => T;
  /**
   * Whether the request may be sent again when its answer was lost. Default: true, but false for POST and PATCH,
   * whose first try may have taken effect. An answer that says "not now" (429, 503) is retried either way.
   */
  readonly replay?: boolean;
  readonly signal?: AbortSignal;
}

/** The answer to {@link ServiceClient.json}. */
export interface JsonAnswer<T> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly value: T;
}

/** How a file is put. */
export interface PutOptions {
  /** Length of the body in bytes; sent as Content-Length. */
  readonly size: number;
  /** Default: `content-type: application/octet-stream`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Seconds in which the cloud takes no byte, or gives no answer after the last one. Default 300. */
  readonly stallTimeout?: number;
}

/** The answer to {@link ServiceClient.put}. */
export interface PutAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/**
 * One service of a cloud, with its token, endpoint and retries. Paths are below its versioned
 * endpoint: `/images`. Every method throws {@link OpenStackError}, `aborted` with the signal's reason as the cause.
 */
export interface ServiceClient {
  /** JSON in, JSON out. Retried within limits when the error is retriable; after a 401 once more with a new token. */
  json<T = undefined>(method: HttpMethod, path: string, options?: JsonOptions<T>): Promise<JsonAnswer<T>>;
  /**
   * Puts one stream, without holding it in memory. `body` is called when the request begins, and once more after a
   * 401; any other failure is the caller's to retry. An error of the body is thrown as it is.
   */
  put(path: string, body: () => AsyncIterable<Buffer>, options: PutOptions): Promise<PutAnswer>;
  /**
   * Fetches an answer of any length, which comes as it is read. A failure is the caller's to retry, as is 300 s in which
   * no byte comes; one in the middle is thrown by the iteration, as `connection-failed`.
   */
  read(path: string, signal?: AbortSignal): Promise<AsyncIterable<Buffer>>;
}
