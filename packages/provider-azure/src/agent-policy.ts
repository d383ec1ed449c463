import { HttpAgent } from '@nodepool-builder/image-builder/plugin';

/** A policy in the SDK's request pipeline. */
export interface AgentPolicy {
  readonly name: string;
  sendRequest<Q extends object, A>(request: Q, next: (request: Q) => Promise<A>): Promise<A>;
}

/**
 * Creates the policy that sends all requests of a client with an {@link HttpAgent} instead of the SDK's own proxy
 * support.
 *
 * @param onFailure called with the error of a request without a response
 */
export function agentPolicy(onFailure: (error: unknown) => void = () => {}): AgentPolicy {
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
