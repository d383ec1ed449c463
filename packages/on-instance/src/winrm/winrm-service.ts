import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Agent } from 'node:https';
import { ImageError, type InstanceAddress } from '@nodepool-builder/image-builder';
import { asNetworkError } from '@nodepool-builder/image-builder/internal';
import { HttpClient, type HttpResponse } from '@nodepool-builder/image-builder/plugin';
import type { Document } from '@xmldom/xmldom';
import { authorityOf } from '../remote-shell.ts';
import { envelope, type Fault, faultIn, OPERATION_TIMEOUT, type WinrmMessage } from './message.ts';
import { parseXml } from './xml.ts';

/**
 * Milliseconds that a response may take beyond the operation timeout. It is long because an emulated machine is slow.
 */
const GRACE_PERIOD = 30_000;

/** Maximum size of a response in bytes, which is several times the maximum in requests. */
const MAX_BODY_SIZE = 4 * 1024 * 1024;

/** A fault response. */
export class WinrmError extends ImageError {
  readonly isTimeout: boolean;

  constructor(what: string, { isTimeout, reason }: Fault) {
    super('instance-failed', `${what}: ${reason}`);
    this.isTimeout = isTimeout;
  }
}

/** The WinRM service of one machine. */
export class WinrmService {
  /** User and machine, for messages. */
  readonly name: string;
  readonly #url: string;
  readonly #agent: Agent;
  readonly #authorization: string;
  /** True if a request got no response. */
  isLost = false;

  /** @param agent connects only to this machine, because requests contain the password */
  constructor(
    address: InstanceAddress,
    { username, password }: { username: string; password: string },
    agent: Agent,
  ) {
    const authority = authorityOf(address);
    this.name = `${username}@${authority}`;
    this.#url = `https://${authority}/wsman`;
    this.#agent = agent;
    this.#authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }

  /**
   * @param timeLimit in milliseconds
   * @throws WinrmError
   * @throws ImageError `login-refused`; `instance-failed` without a response
   * @throws the signal's reason
   */
  async ask(
    message: WinrmMessage,
    signal?: AbortSignal,
    timeLimit: number = OPERATION_TIMEOUT * 1000 + GRACE_PERIOD,
  ): Promise<Document> {
    const response = await this.#send(message, signal, timeLimit);
    if (response.status === 401) throw this.#refused(response.headers);
    const what = `${this.name}: WinRM rejected ${message.action}`;
    const document = parsed(response.body);
    if (document === undefined) {
      throw new ImageError(
        'instance-failed',
        `${what}: HTTP ${response.status} without a WinRM response; check that it is the WinRM port`,
      );
    }
    const fault = faultIn(document);
    if (fault !== undefined) throw new WinrmError(what, fault);
    return document;
  }

  async #send(
    message: WinrmMessage,
    signal: AbortSignal | undefined,
    timeLimit: number,
  ): Promise<HttpResponse> {
    const agent = this.#agent;
    const http = new HttpClient({ timeout: timeLimit / 1000, maxBodySize: MAX_BODY_SIZE, agent });
    // The client's own timeout has no effect before the handshake of a new connection is complete.
    const late = AbortSignal.timeout(timeLimit);
    try {
      return await http.send({
        method: 'POST',
        url: new URL(this.#url),
        body: envelope(message, this.#url, randomUUID()),
        headers: {
          'content-type': 'application/soap+xml;charset=UTF-8',
          authorization: this.#authorization,
        },
        signal: signal === undefined ? late : AbortSignal.any([signal, late]),
      });
    } catch (error) {
      signal?.throwIfAborted();
      this.close();
      const { message: problem, cause } = asNetworkError(error);
      const reason = late.aborted ? `no complete response within ${timeLimit / 1000} s` : problem;
      throw new ImageError('instance-failed', `${this.name}: WinRM does not respond: ${reason}`, { cause });
    }
  }

  /** Ends all connections. */
  close(): void {
    this.isLost = true;
    this.#agent.destroy();
  }

  #refused(headers: IncomingHttpHeaders): ImageError {
    // Each scheme has its own header, and Node joins them.
    const offered = headers['www-authenticate'] ?? '';
    if (/\bbasic\b/i.test(offered)) {
      return new ImageError(
        'login-refused',
        `${this.name} cannot log in with WinRM: correct the username or the password in password-file`,
      );
    }
    return new ImageError(
      'login-refused',
      `${this.name} cannot log in with WinRM: the machine does not accept Basic authentication, but offers ` +
        `${offered || 'nothing else'}; ` +
        'NTLM and Kerberos are not supported here: have the base image run ' +
        '"winrm set winrm/config/service/auth @{Basic="true"}"',
    );
  }
}

function parsed(body: string): Document | undefined {
  try {
    return parseXml(body);
  } catch {
    return undefined;
  }
}
