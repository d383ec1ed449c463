import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { CloudSettings } from '../../../packages/provider-openstack/src/cloud-settings.ts';
import { GlanceDouble } from './glance-double.ts';
import { SwiftDouble } from './swift-double.ts';

/** A request with its body. */
export interface DoubleRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** An answer; an object is sent as JSON. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A task of Glance. */
interface StoredTask {
  readonly id: string;
  status: string;
  message: string;
  result: { image_id?: string } | null;
}

/** Receives each request first; its result, if any, is the answer. */
export type Intercept = (request: DoubleRequest) => Answer | undefined;

/**
 * A cloud with import tasks, on loopback: Glance v2 with tasks and Swift, without Keystone. For behaviour that no real
 * Glance shows in a test.
 */
export class CloudDouble {
  readonly glance: GlanceDouble = new GlanceDouble();
  readonly swift: SwiftDouble = new SwiftDouble();
  /** `METHOD path` of each request. */
  readonly requests: string[] = [];
  intercept: Intercept = () => undefined;
  /** Failure messages of the next tasks. */
  readonly taskFailures: string[] = [];
  readonly #tasks = new Map<string, StoredTask>();
  readonly #url: string;

  private constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}`;
  }

  static async start(t: TestContext): Promise<CloudDouble> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const double = new CloudDouble((server.address() as AddressInfo).port);
    server.on('request', (request, response) => void double.#serve(request, response));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return double;
  }

  settings(imageApiUseTasks = false): CloudSettings {
    return {
      name: 'double',
      auth: { type: 'none', endpoint: this.#url },
      image: { type: 'image', interface: 'public', endpointOverride: `${this.#url}/v2` },
      objectStore: {
        type: 'object-store',
        interface: 'public',
        endpointOverride: `${this.#url}/v1/AUTH_test`,
      },
      compute: { type: 'compute', interface: 'public' },
      network: { type: 'network', interface: 'public' },
      tls: { verify: true },
      apiTimeout: 10,
      imageFormat: 'qcow2',
      imageApiUseTasks,
      disableVendorAgent: imageApiUseTasks ? { vm_mode: 'hvm', xenapi_use_agent: 'False' } : {},
    };
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(message.url ?? '', this.#url);
    const request = {
      method: message.method ?? '',
      path: pathname,
      query: searchParams,
      headers: message.headers,
      body: await buffer(message).catch(() => undefined),
    };
    // The client hung up.
    if (request.body === undefined) return;
    const complete = { ...request, body: request.body };
    this.requests.push(`${request.method} ${request.path}`);
    const { status, headers, body } = this.intercept(complete) ??
      this.glance.handle(complete) ??
      this.swift.handle(complete) ??
      this.#handleTask(complete) ?? { status: 404 };
    const isText = typeof body === 'string';
    response.writeHead(status, {
      'content-type': isText ? 'text/html' : 'application/json',
      ...headers,
    });
    const isReady = body === undefined || isText || Buffer.isBuffer(body);
    response.end(isReady ? body : JSON.stringify(body));
  }

  #handleTask({ method, path, body }: DoubleRequest): Answer | undefined {
    if (method === 'POST' && path === '/v2/tasks') return { status: 201, body: this.#createTask(body) };
    const task = this.#tasks.get(path.replace('/v2/tasks/', ''));
    if (task === undefined) return undefined;
    const shown = { ...task };
    if (task.status === 'processing') task.status = task.message === '' ? 'success' : 'failure';
    return { status: 200, body: shown };
  }

  /** Runs at once, but its status is `processing` once. */
  #createTask(body: Buffer): StoredTask {
    const { input } = JSON.parse(body.toString()) as {
      input: { import_from: string; image_properties: { name: string } };
    };
    const [, container = '', name = ''] = /^([^/]+)\/(.+)$/.exec(input.import_from) ?? [];
    const data = this.swift.object(container, name)?.data;
    const message = this.taskFailures.shift() ?? (data === undefined ? 'no such object' : '');
    const properties = { ...input.image_properties, disk_format: 'vhd', container_format: 'ovf' };
    const image = message === '' && data ? this.glance.importImage(properties, data) : undefined;
    const task: StoredTask = {
      id: randomUUID(),
      status: 'processing',
      message,
      result: image === undefined ? null : { image_id: image.id },
    };
    this.#tasks.set(task.id, task);
    return task;
  }
}
