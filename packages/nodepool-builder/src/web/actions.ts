import type { FastifyRequest } from 'fastify';
import { cancel } from '../commands/cancel.ts';
import { askManager } from '../commands/manager-requests.ts';
import type { User } from './access.ts';
import type { WebContext } from './context.ts';
import { HttpError } from './http-error.ts';

/** Actions of the page and the API. Each returns what happens now, in words. */
export const ACTIONS = {
  rebuild: (context: WebContext, name: string) => ask(context, 'rebuild', name),
  rollback: (context: WebContext, name: string) => ask(context, 'rollback', name),
  'delete-build': (context: WebContext, imageId: string) => ask(context, 'dib-image-delete', imageId),
  'delete-upload': (context: WebContext, uploadId: string) => ask(context, 'upload-delete', uploadId),
  'cancel-build': ({ view }: WebContext, imageId: string, user: User) =>
    cancel(view.servers, imageId, byOf(user), (work) => view.useStore(work)),
  'cancel-upload': ({ view }: WebContext, uploadId: string, user: User) =>
    cancel(view.servers, uploadId, byOf(user), (work) => view.useStore(work)),
} as const;

export type ActionName = keyof typeof ACTIONS;

/**
 * Does what a user asks for.
 *
 * @param formToken the text that the form has sent back
 * @throws HttpError 401, 403; CommandError if it is refused
 */
export async function act(
  context: WebContext,
  request: FastifyRequest,
  action: ActionName,
  subject: string,
  formToken?: string,
): Promise<string> {
  const user = requireUser(context, request, formToken);
  const done = await ACTIONS[action](context, subject, user);
  context.logger.info(`${user.name} at ${request.ip}: ${action} ${subject}: ${done}`);
  await context.view.refresh().catch(() => {}); // the next page shows what has changed
  return done;
}

/** @throws HttpError if the request may not change anything */
export function requireUser({ access }: WebContext, request: FastifyRequest, formToken?: string): User {
  const user = access.userOf(request);
  if (user === undefined) {
    throw new HttpError(401, 'you may only look; log in, or send the token in the header Authorization');
  }
  const isProven = user.formToken === undefined || user.formToken === formToken;
  if (!isProven || !access.isOwnPage(request)) {
    throw new HttpError(403, 'the request did not come from a form of this page; load the page again');
  }
  return user;
}

async function ask({ view }: WebContext, command: string, subject: string): Promise<string> {
  const number = await view.useStore((store) => askManager(command, subject, view.configuration, store));
  return `asked the manager (request ${number})`;
}

function byOf({ name }: User): string {
  return `${name} on the status page`;
}
