package io.pageseek.spark;

import java.nio.ByteBuffer;
import java.util.function.BiFunction;

/** What Python answers. It lives in the driver, and is called through py4j, which knows only interfaces of the JDK. */
final class Planned {
  /** Begins a text that is an error. */
  private static final String ERROR = "\0";

  private final BiFunction<String, Object, Object> python;

  Planned(BiFunction<String, Object, Object> python) {
    this.python = python;
  }

  String text(String question, String about) {
    return (String) answer(question, about);
  }

  long number(String question) {
    return ((Number) answer(question, "")).longValue();
  }

  Object answer(String question) {
    return answer(question, "");
  }

  Object answer(String question, Object about) {
    Object answer = python.apply(question, about);
    if (answer instanceof String && ((String) answer).startsWith(ERROR)) {
      throw new IllegalArgumentException(((String) answer).substring(ERROR.length()));
    }
    return answer;
  }

  /** Pieces of bytes: their number, then the length and the bytes of each. */
  byte[][] pieces(String question, String about) {
    ByteBuffer packed = ByteBuffer.wrap((byte[]) answer(question, about));
    byte[][] made = new byte[packed.getInt()][];
    for (int i = 0; i < made.length; i++) {
      made[i] = new byte[packed.getInt()];
      packed.get(made[i]);
    }
    return made;
  }

  /** Another object of Python, made by this one. */
  @SuppressWarnings("unchecked")
  Planned planned(String question, String about) {
    return new Planned((BiFunction<String, Object, Object>) answer(question, about));
  }
}
