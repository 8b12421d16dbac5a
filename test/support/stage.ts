/** Plays scenes against one running service and keeps, scene by scene, what everybody saw. */
import net, { type Socket } from 'node:net';
import type { Child } from './child.ts';
import { until } from './loopback.ts';

/** One line of an HTTP client's side of things: all bytes that came, and how the connection ended. */
export class Wire {
  readonly socket: Socket;
  text = '';
  end: 'open' | 'ended' | 'reset' | 'left' = 'open';

  constructor(port: number) {
    this.socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.text += text;
    });
    this.socket.on('end', () => {
      if (this.end === 'open') this.end = 'ended';
      this.socket.end();
    });
    this.socket.on('error', () => {
      if (this.end === 'open') this.end = 'reset';
    });
  }

  send(text: string): this {
    this.socket.write(text, 'latin1');
    return this;
  }

  async sees(text: string): Promise<this> {
    await until(() => this.text.includes(text), `${JSON.stringify(text)} in ${JSON.stringify(this.text)}`);
    return this;
  }

  async ends(): Promise<this> {
    await until(
      () => this.socket.closed,
      `the end of a connection that has said ${JSON.stringify(this.text)}`,
    );
    return this;
  }

  /** Leaves in one of the ways there are. */
  leave(how: 'fin' | 'reset' | 'destroy'): this {
    this.end = 'left';
    if (how === 'fin') this.socket.end();
    else if (how === 'reset') this.socket.resetAndDestroy();
    else this.socket.destroy();
    return this;
  }

  /** Without the one header whose value is the time. */
  get transcript(): string {
    return `${this.text.replaceAll(/^Date: [^\r\n]*/gm, 'Date: ...')}[${this.end}]`;
  }
}

/** Gives what there was to see from outside. */
export type Play = (stage: Stage, scene: string) => Promise<unknown>;

export interface Seen {
  readonly outside: unknown;
  /** What was seen when everything was over. */
  readonly afterwards: readonly unknown[];
  /** What the service said, in order. */
  readonly inside: readonly string[];
}

export class Stage {
  readonly child: Child;
  readonly ports: Readonly<Record<string, number>>;
  /** Calls that carried a budget of ours. */
  budgets = 0;
  readonly #outside = new Map<string, unknown>();
  readonly #afterwards = new Map<string, (() => Promise<unknown>)[]>();

  constructor(child: Child, ports: Readonly<Record<string, number>>) {
    this.child = child;
    this.ports = ports;
  }

  static async open(child: Child): Promise<Stage> {
    const ports = await child.says(/^ports (.*)$/m);
    return new Stage(child, JSON.parse(ports) as Record<string, number>);
  }

  wire(server = 'incoming'): Wire {
    const port = this.ports[server];
    if (port === undefined) throw new Error(`no server ${server}`);
    return new Wire(port);
  }

  /** To be looked at when all scenes are over. */
  afterwards(scene: string, look: () => Promise<unknown>): void {
    this.#afterwards.set(scene, [...(this.#afterwards.get(scene) ?? []), look]);
  }

  /** Plays one scene after the other, under their names with `suffix`. What does not come about is seen too. */
  async perform(scenes: Readonly<Record<string, Play>>, suffix = ''): Promise<void> {
    for (const [scene, run] of Object.entries(scenes)) {
      const name = scene + suffix;
      this.#outside.set(name, await run(this, name).catch((error: unknown) => `failed: ${String(error)}`));
    }
  }

  /** All that was seen, by scene, when everything is over. */
  async seen(): Promise<Map<string, Seen>> {
    const seen = new Map<string, Seen>();
    for (const [scene, outside] of this.#outside) {
      const looks = this.#afterwards.get(scene) ?? [];
      const afterwards = await Promise.all(looks.map((look) => look()));
      seen.set(scene, { outside, afterwards, inside: this.lines(scene) });
    }
    return seen;
  }

  /** What the service said in a scene. */
  lines(scene: string): string[] {
    const prefix = `${scene}: `;
    return this.child.stdout
      .split('\n')
      .filter((line) => line.startsWith(prefix))
      .map((line) => line.slice(prefix.length));
  }

  async says(scene: string, line: string, count = 1): Promise<void> {
    await until(
      () => this.lines(scene).filter((each) => each === line).length >= count,
      `"${line}" from ${scene}, which said ${JSON.stringify(this.lines(scene))}; ${this.child.stderr}`,
    );
  }
}

/** A request in text, with what every request needs. */
export function request(line: string, scene: string, headers: readonly string[] = [], body = ''): string {
  const all = ['Host: localhost', `X-Scene: ${scene}`, ...headers];
  return `${line} HTTP/1.1\r\n${all.map((header) => `${header}\r\n`).join('')}\r\n${body}`;
}
