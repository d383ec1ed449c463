import { HttpAgent } from '@nodepool-builder/image-builder/plugin';

/** A policy in the SDK's request pipeline. `Request` and `Response` have the parts that it uses. */
export interface Policy<Request extends object = object, Response = unknown> {
  readonly name: string;
  sendRequest<Q extends Request, A extends Response>(
    request: Q,
    next: (request: Q) => Promise<A>,
  ): Promise<A>;
}

/**
 * Creates the policy that sends all requests of a client with an {@link HttpAgent} instead of the SDK's own proxy
 * support.
 *
 * @param onFailure called with the error of a request without a response
 */
export function agentPolicy(onFailure: (error: unknown) => void = () => {}): Policy {
  const agent = new HttpAgent({ keepAlive: true });
  return {
    name: 'agent',
    sendRequest: async (request, next) =>
      await next(Object.assign(request, { agent })).catch((error: unknown) => {
        onFailure(error);
        throw error;
      }),
  };
}
