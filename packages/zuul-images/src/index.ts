export { ZuulPollers } from './polling/zuul-pollers.ts';
export { ZUUL_ARTIFACT, ZuulArtifactBuilder } from './zuul-artifact.ts';
export type { ZuulSettings } from './zuul-settings.ts';
